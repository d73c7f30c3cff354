<?php
// SPDX-License-Identifier: BSD-3-Clause
// php-memcached, over the C library libmemcached: client_php.php PORT
// text|binary items|cells. Integers have flags 1.

[, $port, $protocol, $part] = $argv;
error_reporting(E_ALL);

function connect(string $port, string $protocol): Memcached
{
    $cache = new Memcached();
    $cache->setOption(Memcached::OPT_BINARY_PROTOCOL, $protocol == 'binary');
    $cache->setOption(Memcached::OPT_COMPRESSION, false);
    $cache->setOption(Memcached::OPT_TCP_NODELAY, true);
    $cache->setOption(Memcached::OPT_POLL_TIMEOUT, 60000);
    $cache->addServer('127.0.0.1', (int)$port);
    return $cache;
}

$cache = connect($port, $protocol);

function equal($got, $wanted): void
{
    if ($got !== $wanted) {
        throw new Exception(sprintf('got %.200s, wanted %.200s',
            var_export($got, true), var_export($wanted, true)));
    }
}

function true($got): void
{
    global $cache;
    if ($got !== true) {
        throw new Exception('got ' . var_export($got, true) . ': ' .
            $cache->getResultMessage());
    }
}

// False, for that reason where one is given.
function false($got, ?int $code = null): void
{
    global $cache;
    equal($got, false);
    if ($code !== null && $cache->getResultCode() !== $code) {
        throw new Exception('refused with ' . $cache->getResultMessage());
    }
}

// Nothing there, which is not the value false.
function nothing(string $key): void
{
    global $cache;
    false($cache->get($key), Memcached::RES_NOTFOUND);
}

function check_set(string $key, $value): void
{
    global $cache;
    true($cache->set($key, $value));
    equal($cache->get($key), $value);
}

function check_cas(string $key): void
{
    global $cache;
    true($cache->set($key, 5));
    $found = $cache->get($key, null, Memcached::GET_EXTENDED);
    equal($found['value'], 5);
    true($cache->cas($found['cas'], $key, 6));
    false($cache->cas($found['cas'], $key, 7), Memcached::RES_DATA_EXISTS);
    equal($cache->get($key), 6);
}

// Only binary has initial values; false where there are none.
function check_initial(string $key): ?bool
{
    global $cache, $protocol;
    if ($protocol == 'text') {
        return false;
    }
    equal($cache->increment($key, 5, 7), 7);
    equal($cache->increment($key, 5, 7), 12);
    return null;
}

// A client that asks for no reply, and then gets on the same connection.
function check_quiet(string $key, $value): void
{
    global $port, $protocol;
    $quiet = connect($port, $protocol);
    $quiet->setOption(Memcached::OPT_NOREPLY, true);
    equal($quiet->set($key, $value), true);
    $quiet->setOption(Memcached::OPT_NOREPLY, false);
    equal($quiet->get($key), $value);
}

function noise(int $count): string
{
    mt_srand($count);
    $text = '';
    while (strlen($text) < $count) {
        $text .= pack('V', mt_rand());
    }
    return substr($text, 0, $count);
}

$items = [
    'text' => fn() => check_set('text', 'plain text'),
    'unicode' => fn() => check_set('unicode', "\u{5fae}\u{535a} \u{e9}"),
    'bytes' => fn() => check_set('bytes',
        str_repeat(implode('', array_map('chr', range(0, 255))), 4)),
    'empty' => fn() => check_set('empty', ''),
    'miss' => fn() => nothing('miss'),
    'add' => function () use ($cache) {
        true($cache->add('add', 'one'));
        false($cache->add('add', 'two'));
        equal($cache->get('add'), 'one');
    },
    'replace' => function () use ($cache) {
        false($cache->replace('replace', 'one'));
        nothing('replace');
        true($cache->set('replace', 'one'));
        true($cache->replace('replace', 'two'));
        equal($cache->get('replace'), 'two');
    },
    'append' => function () use ($cache) {
        true($cache->set('append', 'text'));
        true($cache->append('append', '!'));
        true($cache->prepend('append', '_'));
        equal($cache->get('append'), '_text!');
    },
    'cas' => fn() => check_cas('cas'),
    'number' => function () use ($cache) {
        check_set('number', 10);
        equal($cache->increment('number', 5), 15);
        equal($cache->decrement('number', 3), 12);
        equal($cache->get('number'), 12);
    },
    'floor' => function () use ($cache) {
        check_set('floor', 5);
        equal($cache->decrement('floor', 9), 0);
        equal($cache->get('floor'), 0);
    },
    'wide' => function () use ($cache) {
        check_set('wide', 4294967295);
        equal($cache->increment('wide', 1), 4294967296);
        equal($cache->get('wide'), 4294967296);
    },
    'word' => function () use ($cache) {
        check_set('word', 'word');
        false($cache->increment('word', 1));
        equal($cache->get('word'), 'word');
    },
    'no-number' => function () use ($cache) {
        false($cache->increment('no-number', 1), Memcached::RES_NOTFOUND);
        nothing('no-number');
    },
    'initial' => fn() => check_initial('initial'),
    'delete' => function () use ($cache) {
        check_set('delete', 'x');
        true($cache->delete('delete'));
        nothing('delete');
        false($cache->delete('delete'), Memcached::RES_NOTFOUND);
    },
    'touch' => function () use ($cache) {
        check_set('touch', 'x');
        true($cache->touch('touch', 1000));
        false($cache->touch('touch-none', 1000));
    },
    'expired' => function () use ($cache) {
        true($cache->set('expired', 'x', 1000000000));
        nothing('expired');
    },
    'multi' => function () use ($cache) {
        $values = [];
        $names = [];
        for ($i = 0; $i < 120; $i++) {
            $names[] = "multi-$i";
            if ($i < 100) {
                $values["multi-$i"] = $i;
            }
        }
        true($cache->setMulti($values));
        $got = $cache->getMulti($names);
        ksort($got);
        ksort($values);
        equal($got, $values);
    },
    'large' => fn() => check_set('large', noise(1000000)),
    'too-large' => function () use ($cache) {
        check_set('too-large-not', 'x');
        false($cache->set('too-large', noise(1 << 21)));
        equal($cache->get('too-large-not'), 'x');
    },
    'long-key' => fn() =>
        check_set(substr('long-key' . str_repeat('k', 250), 0, 250), 'x'),
    'quiet' => fn() => check_quiet('quiet', 'x'),
    'stats' => function () use ($cache) {
        check_set('stats', 'x');
        [$found] = array_values($cache->getStats());
        true($found['pid'] > 0 && $found['curr_items'] > 0);
    },
    'flush' => function () use ($cache) {
        check_set('flush', 'x');
        true($cache->flush());
        nothing('flush');
    },
];

$cells = [
    'set' => fn() => check_set('1.cntcm', 41),
    'incr' => function () use ($cache) {
        check_set('2.cntcm', 41);
        equal($cache->increment('2.cntcm'), 42);
        equal($cache->decrement('2.cntcm', 2), 40);
        equal($cache->get('2.cntcm'), 40);
        equal($cache->incrementByKey('any', '2.cntcm', 2), 42);
        equal($cache->decrementByKey('any', '2.cntcm', 2), 40);
        equal($cache->getByKey('any', '2.cntcm'), 40);
    },
    'zeroed' => function () use ($cache) {
        true($cache->add('18.cntcm', 0));
        equal($cache->increment('18.cntcm', 5), 5);
        equal($cache->decrement('18.cntcm', 5), 0);
        equal($cache->increment('18.cntcm', 5), 5);
        equal($cache->get('18.cntcm'), 5);
    },
    'initial' => fn() => check_initial('17.cntcm'),
    'absent' => fn() => equal($cache->get('3.cntan'), 0),
    'from-0' => function () use ($cache) {
        equal($cache->increment('4.cntrn', 5), 5);
        equal($cache->get('4.cntrn'), 5);
    },
    'floor' => function () use ($cache) {
        check_set('5.cntcm', 5);
        equal($cache->decrement('5.cntcm', 9), 0);
        equal($cache->get('5.cntcm'), 0);
    },
    'max' => function () use ($cache) {
        check_set('6.cntan', 4294967295);
        equal($cache->increment('6.cntan'), 4294967295);
    },
    'multi' => function () use ($cache) {
        $page = [];
        for ($i = 0; $i < 99; $i++) {
            $id = 5000000000000000 + 3624 * intdiv($i, 3);
            $suffix = ['cntcm', 'cntrn', 'cntan'][$i % 3];
            $page["$id.$suffix"] = intdiv($i, 3) % 3 ? 40000003 * $i : 0;
        }
        true($cache->setMulti(array_filter($page)));
        $got = $cache->getMulti(array_keys($page));
        ksort($got);
        ksort($page);
        equal($got, $page);
    },
    'columns' => function () use ($cache) {
        equal($cache->get('1234.cntcm'), 111);
        equal($cache->get('1234.cntrn'), 222);
        equal($cache->get('1234.cntan'), 333);
    },
    'record' => fn() => equal($cache->get('1234.weibo'), '111 222 333'),
    'forms' => function () use ($cache) {
        equal($cache->get('{1234}.cntrn'), 222);
        equal($cache->get('1234|#|.cntrn'), 222);
    },
    'quiet' => fn() => check_quiet('16.cntcm', 3),
    'add' => function () use ($cache) {
        true($cache->add('7.cntcm', 1));
        false($cache->add('7.cntcm', 2));
        equal($cache->get('7.cntcm'), 1);
    },
    'replace' => function () use ($cache) {
        false($cache->replace('8.cntcm', 1));
        equal($cache->get('8.cntcm'), 0);
        true($cache->set('8.cntcm', 1));
        true($cache->replace('8.cntcm', 2));
        equal($cache->get('8.cntcm'), 2);
    },
    'cas' => fn() => check_cas('9.cntcm'),
    'word' => function () use ($cache) {
        check_set('10.cntcm', 41);
        false($cache->set('10.cntcm', 'word'));
        equal($cache->get('10.cntcm'), 41);
        // It does not say that a key was refused: doc/clients.md has it.
        true($cache->setMulti(['10.cntcm' => 'word', '19.cntcm' => 7]));
        equal($cache->getMulti(['10.cntcm', '19.cntcm']),
              ['10.cntcm' => 41, '19.cntcm' => 7]);
    },
    'too-wide' => function () use ($cache) {
        check_set('11.cntcm', 41);
        false($cache->set('11.cntcm', 4294967296));
        equal($cache->get('11.cntcm'), 41);
    },
    'expires' => function () use ($cache) {
        false($cache->set('12.cntcm', 1, 60));
        equal($cache->get('12.cntcm'), 0);
    },
    'append' => function () use ($cache) {
        check_set('13.cntcm', 41);
        false($cache->append('13.cntcm', '1'));
        equal($cache->get('13.cntcm'), 41);
    },
    'delete' => function () use ($cache) {
        check_set('14.cntcm', 41);
        true($cache->delete('14.cntcm'));
        equal($cache->get('14.cntcm'), 0);
        false($cache->delete('14.cntcm'), Memcached::RES_NOTFOUND);
    },
    'flush' => function () use ($cache) {
        check_set('15.cntcm', 41);
        true($cache->flush());
        equal($cache->get('15.cntcm'), 41);
    },
];

foreach ($part == 'items' ? $items : $cells as $name => $call) {
    try {
        // A row that the protocol has not returns false.
        if ($call() !== false) {
            echo "ok $name\n";
        }
    } catch (Throwable $why) {
        $lines = array_column($why->getTrace(), 'line');
        echo "not ok $name lines ", implode(', ', $lines), ': ',
            str_replace("\n", ' ', $why->getMessage()), "\n";
    }
}
