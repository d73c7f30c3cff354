// SPDX-License-Identifier: BSD-3-Clause

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.transcoders.SerializingTranscoder;

/**
 * spymemcached: java ClientSpymemcached.java PORT text|binary items|cells.
 * What is counted is a String of digits with flags 0; incr and decr give long.
 */
public final class ClientSpymemcached {
    private static final int WAIT_S = 60;
    private static final int PAST_S = 1000000000;
    private static MemcachedClient cache;
    private static boolean isBinary;

    /** What a row does; throws where something is not as it must be. */
    private interface Row {
        void run() throws Exception;
    }

    private static void need(boolean is, String what) {
        if (!is) {
            throw new IllegalStateException(what);
        }
    }

    private static void equal(Object got, Object wanted) {
        boolean same = got instanceof byte[] && wanted instanceof byte[]
            ? Arrays.equals((byte[]) got, (byte[]) wanted)
            : got == null ? wanted == null : got.equals(wanted);
        need(same, "got " + show(got) + ", wanted " + show(wanted));
    }

    private static String show(Object value) {
        String text = value instanceof byte[]
            ? ((byte[]) value).length + " bytes" : String.valueOf(value);
        return text.substring(0, Math.min(200, text.length()));
    }

    private static void yes(Future<Boolean> future) throws Exception {
        equal(future.get(WAIT_S, TimeUnit.SECONDS), true);
    }

    private static void no(Future<Boolean> future) throws Exception {
        equal(future.get(WAIT_S, TimeUnit.SECONDS), false);
    }

    /** False, or an exception. */
    private static void error(Future<Boolean> future) throws Exception {
        try {
            no(future);
        } catch (java.util.concurrent.ExecutionException why) {
            return;
        }
    }

    private static void checkSet(String key, Object value) throws Exception {
        yes(cache.set(key, 0, value));
        equal(cache.get(key), value);
    }

    private static void checkCas(String key) throws Exception {
        yes(cache.set(key, 0, "5"));
        CASValue<Object> found = cache.gets(key);
        equal(found.getValue(), "5");
        equal(cache.cas(key, found.getCas(), "6"), CASResponse.OK);
        equal(cache.cas(key, found.getCas(), "7"), CASResponse.EXISTS);
        equal(cache.get(key), "6");
    }

    private static void checkAdd(String key) throws Exception {
        yes(cache.add(key, 0, "1"));
        no(cache.add(key, 0, "2"));
        equal(cache.get(key), "1");
    }

    private static void checkReplace(String key) throws Exception {
        no(cache.replace(key, 0, "1"));
        yes(cache.set(key, 0, "1"));
        yes(cache.replace(key, 0, "2"));
        equal(cache.get(key), "2");
    }

    private static void checkInitial(String key) {
        equal(cache.incr(key, 5, 7L), 7L);
        equal(cache.incr(key, 5, 7L), 12L);
    }

    private static byte[] noise(int count) {
        byte[] bytes = new byte[count];
        new Random(count).nextBytes(bytes);
        return bytes;
    }

    private static byte[] allBytes() {
        byte[] bytes = new byte[1024];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) i;
        }
        return bytes;
    }

    private static void incrOfWord() throws Exception {
        checkSet("word", "word");
        try {
            Long got = cache.asyncIncr("word", 1).get(
                WAIT_S, TimeUnit.SECONDS);
            need(got == null || got == -1, "incr gave " + got);
        } catch (java.util.concurrent.ExecutionException why) {
            need(cache.get("word") != null, "gone");
        }
        equal(cache.get("word"), "word");
    }

    private static void itemMulti() throws Exception {
        Map<String, Object> values = new HashMap<>();
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < 120; i++) {
            keys.add("multi-" + i);
            if (i < 100) {
                values.put("multi-" + i, i);
                yes(cache.set("multi-" + i, 0, i));
            }
        }
        equal(cache.getBulk(keys), values);
    }

    private static void cellMulti() throws Exception {
        String[] suffixes = {"cntcm", "cntrn", "cntan"};
        Map<String, Object> page = new HashMap<>();
        for (int i = 0; i < 99; i++) {
            long number = i / 3 % 3 == 0 ? 0 : 40000003L * i;
            String key = 5000000000000000L + 3624L * (i / 3) + "."
                + suffixes[i % 3];
            page.put(key, String.valueOf(number));
            if (number != 0) {
                yes(cache.set(key, 0, String.valueOf(number)));
            }
        }
        equal(cache.getBulk(page.keySet()), page);
    }

    private static void storeItems(Map<String, Row> rows) {
        rows.put("text", () -> checkSet("text", "plain text"));
        rows.put("unicode", () -> checkSet("unicode", "\u5fae\u535a \u00e9"));
        rows.put("bytes", () -> checkSet("bytes", allBytes()));
        rows.put("empty", () -> checkSet("empty", ""));
        rows.put("miss", () -> equal(cache.get("miss"), null));
        rows.put("add", () -> checkAdd("add"));
        rows.put("replace", () -> checkReplace("replace"));
        rows.put("append", () -> {
            yes(cache.set("append", 0, "text"));
            yes(cache.append("append", "!"));
            yes(cache.prepend("append", "_"));
            equal(cache.get("append"), "_text!");
        });
        rows.put("cas", () -> checkCas("cas"));
        rows.put("large", () -> checkSet("large", noise(1000000)));
        rows.put("too-large", () -> {
            checkSet("too-large-not", "x");
            error(cache.set("too-large", 0, noise(1 << 21)));
            equal(cache.get("too-large-not"), "x");
        });
        rows.put("long-key", () -> checkSet(
            ("long-key" + "k".repeat(250)).substring(0, 250), "x"));
        rows.put("multi", ClientSpymemcached::itemMulti);
    }

    private static void countItems(Map<String, Row> rows) {
        rows.put("number", () -> {
            checkSet("number", "10");
            equal(cache.incr("number", 5), 15L);
            equal(cache.decr("number", 3), 12L);
            equal(cache.get("number"), "12");
        });
        rows.put("floor", () -> {
            checkSet("floor", "5");
            equal(cache.decr("floor", 9), 0L);
            equal(cache.get("floor"), "0");
        });
        rows.put("wide", () -> {
            checkSet("wide", "4294967295");
            equal(cache.incr("wide", 1), 4294967296L);
            equal(cache.get("wide"), "4294967296");
        });
        rows.put("word", ClientSpymemcached::incrOfWord);
        rows.put("no-number", () -> {
            equal(cache.incr("no-number", 1), -1L);
            equal(cache.get("no-number"), null);
        });
        rows.put("initial", () -> checkInitial("initial"));
    }

    private static void endItems(Map<String, Row> rows) {
        rows.put("delete", () -> {
            checkSet("delete", "x");
            yes(cache.delete("delete"));
            equal(cache.get("delete"), null);
            no(cache.delete("delete"));
        });
        rows.put("touch", () -> {
            checkSet("touch", "x");
            yes(cache.touch("touch", 1000));
            no(cache.touch("touch-none", 1000));
        });
        if (isBinary) {
            rows.put("gat", () -> {
                checkSet("gat", "x");
                equal(cache.getAndTouch("gat", 1000).getValue(), "x");
                equal(cache.getAndTouch("gat-none", 1000), null);
            });
        }
        rows.put("expired", () -> {
            yes(cache.set("expired", PAST_S, "x"));
            equal(cache.get("expired"), null);
        });
        rows.put("stats", () -> {
            checkSet("stats", "x");
            Map<String, String> found =
                cache.getStats().values().iterator().next();
            need(Long.parseLong(found.get("pid")) > 0, "pid");
            need(Long.parseLong(found.get("curr_items")) > 0, "curr_items");
        });
        rows.put("flush", () -> {
            checkSet("flush", "x");
            yes(cache.flush());
            equal(cache.get("flush"), null);
        });
    }

    private static void countCells(Map<String, Row> rows) {
        rows.put("set", () -> checkSet("1.cntcm", "41"));
        rows.put("incr", () -> {
            checkSet("2.cntcm", "41");
            equal(cache.incr("2.cntcm", 1), 42L);
            equal(cache.decr("2.cntcm", 2), 40L);
            equal(cache.get("2.cntcm"), "40");
        });
        rows.put("absent", () -> equal(cache.get("3.cntan"), "0"));
        rows.put("from-0", () -> {
            equal(cache.incr("4.cntrn", 5), 5L);
            equal(cache.get("4.cntrn"), "5");
        });
        rows.put("zeroed", () -> {
            checkSet("18.cntcm", "0");
            equal(cache.incr("18.cntcm", 5), 5L);
            equal(cache.decr("18.cntcm", 5), 0L);
            equal(cache.incr("18.cntcm", 5), 5L);
            equal(cache.get("18.cntcm"), "5");
        });
        if (isBinary) {
            rows.put("initial", () -> checkInitial("17.cntcm"));
        }
        rows.put("floor", () -> {
            checkSet("5.cntcm", "5");
            equal(cache.decr("5.cntcm", 9), 0L);
            equal(cache.get("5.cntcm"), "0");
        });
        rows.put("max", () -> {
            checkSet("6.cntan", "4294967295");
            equal(cache.incr("6.cntan", 1), 4294967295L);
        });
        rows.put("multi", ClientSpymemcached::cellMulti);
        rows.put("columns", () -> {
            equal(cache.get("1234.cntcm"), "111");
            equal(cache.get("1234.cntrn"), "222");
            equal(cache.get("1234.cntan"), "333");
        });
        rows.put("record", () -> equal(
            cache.get("1234.weibo"), "111 222 333"));
        rows.put("forms", () -> {
            equal(cache.get("{1234}.cntrn"), "222");
            equal(cache.get("1234|#|.cntrn"), "222");
        });
    }

    private static void storeCells(Map<String, Row> rows) {
        rows.put("add", () -> checkAdd("7.cntcm"));
        rows.put("replace", () -> checkReplace("8.cntcm"));
        rows.put("cas", () -> checkCas("9.cntcm"));
        rows.put("word", () -> {
            checkSet("10.cntcm", "41");
            error(cache.set("10.cntcm", 0, "word"));
            equal(cache.get("10.cntcm"), "41");
        });
        rows.put("too-wide", () -> {
            checkSet("11.cntcm", "41");
            error(cache.set("11.cntcm", 0, "4294967296"));
            equal(cache.get("11.cntcm"), "41");
        });
        rows.put("expires", () -> {
            error(cache.set("12.cntcm", 60, "1"));
            equal(cache.get("12.cntcm"), "0");
        });
        rows.put("append", () -> {
            checkSet("13.cntcm", "41");
            error(cache.append("13.cntcm", "1"));
            equal(cache.get("13.cntcm"), "41");
        });
        rows.put("delete", () -> {
            checkSet("14.cntcm", "41");
            yes(cache.delete("14.cntcm"));
            equal(cache.get("14.cntcm"), "0");
            no(cache.delete("14.cntcm"));
        });
        rows.put("flush", () -> {
            checkSet("15.cntcm", "41");
            yes(cache.flush());
            equal(cache.get("15.cntcm"), "41");
        });
    }

    private static void connect(int port) throws Exception {
        SerializingTranscoder transcoder = new SerializingTranscoder(1 << 22);
        transcoder.setCompressionThreshold(1 << 22);
        cache = new MemcachedClient(
            new ConnectionFactoryBuilder(new DefaultConnectionFactory())
                .setProtocol(isBinary ? Protocol.BINARY : Protocol.TEXT)
                .setOpTimeout(TimeUnit.SECONDS.toMillis(WAIT_S))
                .setTranscoder(transcoder)
                .build(),
            List.of(new InetSocketAddress("127.0.0.1", port)));
    }

    private static String why(Throwable error) {
        StringBuilder lines = new StringBuilder("lines");
        for (StackTraceElement at : error.getStackTrace()) {
            if (at.getClassName().startsWith("ClientSpymemcached")) {
                lines.append(' ').append(at.getLineNumber());
            }
        }
        return lines + " " + String.valueOf(error).replace('\n', ' ');
    }

    /** Runs the rows of a part. */
    public static void main(String[] arguments) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl",
            "net.spy.memcached.compat.log.SunLogger");
        Logger.getLogger("net.spy").setLevel(Level.OFF);
        isBinary = arguments[1].equals("binary");
        connect(Integer.parseInt(arguments[0]));
        Map<String, Row> rows = new LinkedHashMap<>();
        if (arguments[2].equals("items")) {
            storeItems(rows);
            countItems(rows);
            endItems(rows);
        } else {
            countCells(rows);
            storeCells(rows);
        }
        for (Map.Entry<String, Row> row : rows.entrySet()) {
            try {
                row.getValue().run();
                System.out.println("ok " + row.getKey());
            } catch (Throwable error) {
                System.out.println(
                    "not ok " + row.getKey() + " " + why(error));
            }
        }
        cache.shutdown();
    }
}
