#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Cache::Memcached and Cache::Memcached::Fast, whose methods have the same
# names: client_cache_memcached.pl PORT text items|cells CLASS. Scalars have
# flags 0; what is false is a refusal or an error.
use strict;
use warnings;
use utf8;
use Encode qw(decode encode);

my ($port, undef, $part, $class) = @ARGV;
my $is_fast = $class eq 'Cache::Memcached::Fast';
eval "require $class" or die $@;
$| = 1;
binmode STDOUT, ':utf8';

sub open_client
{
    my %options = (
        servers => ["127.0.0.1:$port"],
        $is_fast ? 'io_timeout' : 'select_timeout' => 60,
        @_);
    return $class->new(\%options);
}

my $cache = open_client($is_fast ? (max_size => 1 << 22) : ());

sub equal
{
    my ($got, $wanted) = @_;
    my $same =
        defined $got ? defined $wanted && $got eq $wanted : !defined $wanted;
    $same or die sprintf "got %.200s, wanted %.200s\n", $got // 'undef',
        $wanted // 'undef';
}

sub true
{
    $_[0] or die "got a false value\n";
}

sub false
{
    $_[0] and die "got a true value\n";
}

sub check_set
{
    my ($key, $value) = @_;
    true($cache->set($key, $value));
    equal($cache->get($key), $value);
}

sub check_cas
{
    my ($key) = @_;
    true($cache->set($key, 5));
    my ($unique, $value) = @{$cache->gets($key)};
    equal($value, 5);
    true($cache->cas($key, $unique, 6));
    false($cache->cas($key, $unique, 7));
    equal($cache->get($key), 6);
}

# With nowait, a set in void context asks for no reply.
sub check_quiet
{
    my ($key, $value) = @_;
    my $quiet = open_client(nowait => 1);
    $quiet->set($key, $value);
    $quiet->nowait_push;
    equal($quiet->get($key), $value);
}

sub noise
{
    my ($count) = @_;
    srand $count;
    return join '', map { chr int rand 256 } 1 .. $count;
}

my $all_bytes = join('', map { chr } 0 .. 255) x 4;
my $long_key = substr 'long-key' . 'k' x 250, 0, 250;

# [row, what it does, methods it needs]
my @items = (
    [text => sub { check_set('text', 'plain text') }],
    [unicode => sub {
        my $text = "\x{5fae}\x{535a} \x{e9}";
        true($cache->set('unicode', encode('UTF-8', $text)));
        equal(decode('UTF-8', $cache->get('unicode')), $text);
    }],
    [bytes => sub { check_set('bytes', $all_bytes) }],
    [empty => sub { check_set('empty', '') }],
    [miss => sub { equal($cache->get('miss'), undef) }],
    [add => sub {
        true($cache->add('add', 'one'));
        false($cache->add('add', 'two'));
        equal($cache->get('add'), 'one');
    }],
    [replace => sub {
        false($cache->replace('replace', 'one'));
        equal($cache->get('replace'), undef);
        true($cache->set('replace', 'one'));
        true($cache->replace('replace', 'two'));
        equal($cache->get('replace'), 'two');
    }],
    [append => sub {
        true($cache->set('append', 'text'));
        true($cache->append('append', '!'));
        true($cache->prepend('append', '_'));
        equal($cache->get('append'), '_text!');
    }],
    [cas => sub { check_cas('cas') }, 'cas'],
    [number => sub {
        check_set('number', 10);
        equal($cache->incr('number', 5), 15);
        equal($cache->decr('number', 3), 12);
        equal($cache->get('number'), 12);
    }],
    # Nothing is written by incr and decr themselves: 0 may be "0 but true".
    [floor => sub {
        check_set('floor', 5);
        $cache->decr('floor', 9) == 0 or die "decr\n";
        equal($cache->get('floor'), 0);
    }],
    [wide => sub {
        check_set('wide', 4294967295);
        equal($cache->incr('wide', 1), 4294967296);
        equal($cache->get('wide'), 4294967296);
    }],
    [word => sub {
        check_set('word', 'word');
        false($cache->incr('word', 1));
        equal($cache->get('word'), 'word');
    }],
    ['no-number' => sub {
        false($cache->incr('no-number', 1));
        equal($cache->get('no-number'), undef);
    }],
    [delete => sub {
        check_set('delete', 'x');
        true($cache->delete('delete'));
        equal($cache->get('delete'), undef);
        false($cache->delete('delete'));
    }],
    [touch => sub {
        check_set('touch', 'x');
        true($cache->touch('touch', 1000));
        false($cache->touch('touch-none', 1000));
    }, 'touch'],
    [gat => sub {
        check_set('gat', 'x');
        equal($cache->gat(1000, 'gat'), 'x');
        equal($cache->gat(1000, 'gat-none'), undef);
    }, 'gat'],
    [expired => sub {
        true($cache->set('expired', 'x', 1_000_000_000));
        equal($cache->get('expired'), undef);
    }],
    [multi => sub {
        true($cache->set("multi-$_", $_)) for 0 .. 99;
        my $got = $cache->get_multi(map { "multi-$_" } 0 .. 119);
        equal(scalar keys %$got, 100);
        equal($got->{"multi-$_"}, $_) for 0 .. 99;
    }],
    [large => sub { check_set('large', noise(1_000_000)) }],
    ['too-large' => sub {
        check_set('too-large-not', 'x');
        false($cache->set('too-large', noise(1 << 21)));
        equal($cache->get('too-large-not'), 'x');
    }],
    ['long-key' => sub { check_set($long_key, 'x') }],
    [quiet => sub { check_quiet('quiet', 'x') }, 'nowait_push'],
    [stats => sub {
        check_set('stats', 'x');
        my $stats = $cache->stats('misc')->{hosts}{"127.0.0.1:$port"}{misc};
        true($stats->{pid} > 0);
        true($stats->{curr_items} > 0);
    }, 'stats'],
    [flush => sub {
        check_set('flush', 'x');
        true($cache->flush_all);
        equal($cache->get('flush'), undef);
    }],
);

# The number of cell $_[0] of the page; each third of a column is 0.
sub number
{
    my ($i) = @_;
    return int($i / 3) % 3 ? 40_000_003 * $i : 0;
}

my @cells = (
    [set => sub { check_set('1.cntcm', 41) }],
    [incr => sub {
        check_set('2.cntcm', 41);
        equal($cache->incr('2.cntcm', 1), 42);
        equal($cache->decr('2.cntcm', 2), 40);
        equal($cache->get('2.cntcm'), 40);
    }],
    [absent => sub { equal($cache->get('3.cntan'), 0) }],
    ['from-0' => sub {
        equal($cache->incr('4.cntrn', 5), 5);
        equal($cache->get('4.cntrn'), 5);
    }],
    [zeroed => sub {
        check_set('18.cntcm', 0);
        equal($cache->incr('18.cntcm', 5), 5);
        $cache->decr('18.cntcm', 5) == 0 or die "decr\n";
        equal($cache->incr('18.cntcm', 5), 5);
        equal($cache->get('18.cntcm'), 5);
    }],
    [floor => sub {
        check_set('5.cntcm', 5);
        $cache->decr('5.cntcm', 9) == 0 or die "decr\n";
        equal($cache->get('5.cntcm'), 0);
    }],
    [max => sub {
        check_set('6.cntan', 4294967295);
        equal($cache->incr('6.cntan', 1), 4294967295);
    }],
    [multi => sub {
        my @suffixes = qw(cntcm cntrn cntan);
        my @keys = map {
            5_000_000_000_000_000 + 3624 * int($_ / 3) . ".$suffixes[$_ % 3]"
        } 0 .. 98;
        number($_) and true($cache->set($keys[$_], number($_))) for 0 .. 98;
        my $got = $cache->get_multi(@keys);
        equal(scalar keys %$got, 99);
        equal($got->{$keys[$_]}, number($_)) for 0 .. 98;
    }],
    [columns => sub {
        equal($cache->get('1234.cntcm'), 111);
        equal($cache->get('1234.cntrn'), 222);
        equal($cache->get('1234.cntan'), 333);
    }],
    [record => sub { equal($cache->get('1234.weibo'), '111 222 333') }],
    [forms => sub {
        equal($cache->get('{1234}.cntrn'), 222);
        equal($cache->get('1234|#|.cntrn'), 222);
    }],
    [quiet => sub { check_quiet('16.cntcm', 3) }, 'nowait_push'],
    [add => sub {
        true($cache->add('7.cntcm', 1));
        false($cache->add('7.cntcm', 2));
        equal($cache->get('7.cntcm'), 1);
    }],
    [replace => sub {
        false($cache->replace('8.cntcm', 1));
        equal($cache->get('8.cntcm'), 0);
        true($cache->set('8.cntcm', 1));
        true($cache->replace('8.cntcm', 2));
        equal($cache->get('8.cntcm'), 2);
    }],
    [cas => sub { check_cas('9.cntcm') }, 'cas'],
    [word => sub {
        check_set('10.cntcm', 41);
        false($cache->set('10.cntcm', 'word'));
        equal($cache->get('10.cntcm'), 41);
    }],
    ['too-wide' => sub {
        check_set('11.cntcm', 41);
        false($cache->set('11.cntcm', 4294967296));
        equal($cache->get('11.cntcm'), 41);
    }],
    [expires => sub {
        false($cache->set('12.cntcm', 1, 60));
        equal($cache->get('12.cntcm'), 0);
    }],
    [append => sub {
        check_set('13.cntcm', 41);
        false($cache->append('13.cntcm', '1'));
        equal($cache->get('13.cntcm'), 41);
    }],
    [delete => sub {
        check_set('14.cntcm', 41);
        true($cache->delete('14.cntcm'));
        equal($cache->get('14.cntcm'), 0);
        false($cache->delete('14.cntcm'));
    }],
    [flush => sub {
        check_set('15.cntcm', 41);
        true($cache->flush_all);
        equal($cache->get('15.cntcm'), 41);
    }],
);

for my $row ($part eq 'items' ? @items : @cells) {
    my ($name, $call, $needs) = @$row;
    next if $needs && !$class->can($needs);
    print eval { $call->(); 1 } ? "ok $name\n" : "not ok $name $@";
}
