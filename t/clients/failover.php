<?php
// SPDX-License-Identifier: BSD-3-Clause
// php-memcached through a failover, see README.

[, , $protocol, $addresses, $keys] = $argv;
$cache = new Memcached();
$cache->setOption(Memcached::OPT_BINARY_PROTOCOL, $protocol == 'binary');
$cache->setOption(Memcached::OPT_TCP_NODELAY, true);
$cache->setOption(Memcached::OPT_CONNECT_TIMEOUT, 200);
$cache->setOption(Memcached::OPT_POLL_TIMEOUT, 2000);
$cache->setOption(Memcached::OPT_SEND_TIMEOUT, 2000000);
$cache->setOption(Memcached::OPT_RECV_TIMEOUT, 2000000);
$cache->setOption(Memcached::OPT_RETRY_TIMEOUT, 1);
foreach (explode(',', $addresses) as $one) {
    [$host, $port] = explode(':', $one);
    $cache->addServer($host, (int)$port);
}

function once(string $key): bool
{
    global $cache;
    $answer = $cache->increment($key, 1);
    if (is_int($answer)) {
        echo "ok $answer\n";
        return true;
    }
    echo 'error ', var_export($answer, true), ' is returned: ',
        $cache->getResultMessage(), "\n";
    return false;
}

foreach (explode(',', $keys) as $key) {
    if (once($key)) {
        echo "key $key\n";
        while (true) {
            once($key);
            usleep(20000);
        }
    }
}
