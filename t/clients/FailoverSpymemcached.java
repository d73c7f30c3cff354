// SPDX-License-Identifier: BSD-3-Clause

import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.MemcachedClient;

/** spymemcached through a failover, see README. */
public final class FailoverSpymemcached {
    private static final int PAUSE_MS = 20;
    private static final int LIMIT_MS = 2000;
    private static MemcachedClient cache;

    private FailoverSpymemcached() {
    }

    private static boolean once(String key) {
        String what;
        try {
            long answer = cache.incr(key, 1);
            if (answer >= 0) {
                System.out.println("ok " + answer);
                return true;
            }
            what = answer + " is returned";
        } catch (RuntimeException why) {
            what = why.getClass().getSimpleName() + ": " + why.getMessage();
        }
        System.out.println("error " + what.replaceAll("\\s+", " "));
        return false;
    }

    /** CLIENT PROTOCOL ADDRESSES KEYS. */
    public static void main(String[] words) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl",
            "net.spy.memcached.compat.log.SunLogger");
        Logger.getLogger("net.spy.memcached").setLevel(Level.OFF);
        cache = new MemcachedClient(
            new ConnectionFactoryBuilder()
                .setProtocol(words[1].equals("binary")
                    ? Protocol.BINARY : Protocol.TEXT)
                .setOpTimeout(LIMIT_MS)
                .setMaxReconnectDelay(1)
                .build(),
            AddrUtil.getAddresses(words[2].replace(',', ' ')));
        for (String key : words[3].split(",")) {
            if (!once(key)) {
                continue;
            }
            System.out.println("key " + key);
            while (true) {
                once(key);
                Thread.sleep(PAUSE_MS);
            }
        }
        System.exit(0);
    }
}
