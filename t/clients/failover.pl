#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Cache::Memcached and Cache::Memcached::Fast through a failover, see README.
use strict;
use warnings;
use Time::HiRes qw(sleep);

my ($class, undef, $addresses, $keys) = @ARGV;
eval "require $class" or die $@;
$| = 1;
my $cache = $class->new({
    servers => [split /,/, $addresses],
    connect_timeout => 0.2,
    $class eq 'Cache::Memcached::Fast'
        ? (io_timeout => 2, failure_timeout => 1) : (select_timeout => 2),
});

sub once
{
    my ($key) = @_;
    my $answer = eval { $cache->incr($key, 1) };
    if (defined $answer && $answer =~ /^[0-9]+$/) {
        print "ok $answer\n";
        return 1;
    }
    my $what = $@ ? "dies: $@"
        : (defined $answer ? "'$answer'" : 'undef') . ' is returned';
    $what =~ s/\s+/ /g;
    print "error $what\n";
    return 0;
}

for my $key (split /,/, $keys) {
    next unless once($key);
    print "key $key\n";
    while (1) {
        once($key);
        sleep(0.02);
    }
}
