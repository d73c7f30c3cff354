#!/usr/bin/ruby
# SPDX-License-Identifier: BSD-3-Clause
# dalli, which speaks binary: client_dalli.rb PORT binary items|cells. What is
# counted is raw: digits with flags 0; incr and decr give integers.
require 'logger'
require 'dalli'

PORT, _, PART = ARGV
Dalli.logger = Logger.new(IO::NULL)
$cache = Dalli::Client.new(["127.0.0.1:#{PORT}"],
                           compress: false, socket_timeout: 60,
                           value_max_bytes: 1 << 22)
RAW = { raw: true }.freeze

def equal(got, wanted)
  return if got == wanted && got.class == wanted.class

  raise "got #{got.inspect[0, 200]}, wanted #{wanted.inspect[0, 200]}"
end

def true?(got)
  raise "got #{got.inspect}, wanted what is true" unless got
end

# What stores gives the unique, 0 where nothing was stored.
def false?(got)
  raise "got #{got.inspect}, wanted what is false" if got && got != 0
end

def error?
  yield
rescue Dalli::DalliError
  nil
else
  raise 'no error'
end

def check_set(key, value, options = nil)
  true?($cache.set(key, value, nil, options))
  equal($cache.get(key), value)
end

def check_raw(key, value)
  check_set(key, value.to_s, RAW)
end

def check_cas(key)
  true?($cache.set(key, '5', nil, RAW))
  true?($cache.cas(key, nil, RAW) { |value| equal(value, '5') || '6' })
  equal($cache.get(key), '6')
  again = $cache.cas(key, nil, RAW) do |_|
    $cache.set(key, '7', nil, RAW)
    '8'
  end
  false?(again)
  equal($cache.get(key), '7')
end

# A count between the read and the write of a record is not lost.
def check_record_cas
  true?($cache.set('19.weibo', '1 2 3', nil, RAW))
  again = $cache.cas('19.weibo', nil, RAW) do |value|
    equal(value, '1 2 3')
    equal($cache.incr('19.cntrn', 100), 102)
    '1 2 4'
  end
  false?(again)
  true?($cache.cas('19.weibo', nil, RAW) { |_| '1 102 4' })
  equal($cache.get('19.weibo'), '1 102 4')
end

def check_initial(key)
  equal($cache.incr(key, 5, 0, 7), 7)
  equal($cache.incr(key, 5, 0, 7), 12)
end

def noise(count)
  Random.new(count).bytes(count)
end

def check_quiet(key, value)
  $cache.multi { $cache.set(key, value, nil, RAW) }
  equal($cache.get(key), value)
end

ITEMS = {
  'text' => -> { check_set('text', 'plain text') },
  'unicode' => -> { check_set('unicode', "\u5fae\u535a \u00e9") },
  'bytes' => -> { check_set('bytes', (0..255).to_a.pack('C*') * 4) },
  'empty' => -> { check_set('empty', '') },
  'miss' => -> { equal($cache.get('miss'), nil) },
  'add' => lambda {
    true?($cache.add('add', 'one'))
    false?($cache.add('add', 'two'))
    equal($cache.get('add'), 'one')
  },
  'replace' => lambda {
    false?($cache.replace('replace', 'one'))
    equal($cache.get('replace'), nil)
    true?($cache.set('replace', 'one'))
    true?($cache.replace('replace', 'two'))
    equal($cache.get('replace'), 'two')
  },
  'append' => lambda {
    true?($cache.set('append', 'text', nil, RAW))
    true?($cache.append('append', '!'))
    true?($cache.prepend('append', '_'))
    equal($cache.get('append'), '_text!')
  },
  'cas' => -> { check_cas('cas') },
  'number' => lambda {
    check_raw('number', 10)
    equal($cache.incr('number', 5), 15)
    equal($cache.decr('number', 3), 12)
    equal($cache.get('number'), '12')
  },
  'floor' => lambda {
    check_raw('floor', 5)
    equal($cache.decr('floor', 9), 0)
    equal($cache.get('floor'), '0')
  },
  'wide' => lambda {
    check_raw('wide', 4_294_967_295)
    equal($cache.incr('wide', 1), 4_294_967_296)
    equal($cache.get('wide'), '4294967296')
  },
  'word' => lambda {
    check_raw('word', 'word')
    error? { $cache.incr('word', 1) }
    equal($cache.get('word'), 'word')
  },
  'no-number' => lambda {
    equal($cache.incr('no-number', 1), nil)
    equal($cache.get('no-number'), nil)
  },
  'initial' => -> { check_initial('initial') },
  'delete' => lambda {
    check_set('delete', 'x')
    true?($cache.delete('delete'))
    equal($cache.get('delete'), nil)
    false?($cache.delete('delete'))
  },
  'touch' => lambda {
    check_set('touch', 'x')
    true?($cache.touch('touch', 1000))
    false?($cache.touch('touch-none', 1000))
  },
  'gat' => lambda {
    check_set('gat', 'x')
    equal($cache.gat('gat', 1000), 'x')
    equal($cache.gat('gat-none', 1000), nil)
  },
  'multi' => lambda {
    values = (0...100).to_h { |i| ["multi-#{i}", i] }
    $cache.multi { values.each { |key, value| $cache.set(key, value) } }
    equal($cache.get_multi((0...120).map { |i| "multi-#{i}" }), values)
  },
  'large' => -> { check_set('large', noise(1_000_000)) },
  'too-large' => lambda {
    check_set('too-large-not', 'x')
    error? { $cache.set('too-large', noise(1 << 21)) }
    equal($cache.get('too-large-not'), 'x')
  },
  'long-key' => -> { check_set("long-key#{'k' * 250}"[0, 250], 'x') },
  'quiet' => -> { check_quiet('quiet', 'x') },
  'stats' => lambda {
    check_set('stats', 'x')
    found = $cache.stats.values.first
    true?(found['pid'].to_i.positive? && found['curr_items'].to_i.positive?)
  },
  'flush' => lambda {
    check_set('flush', 'x')
    true?($cache.flush.all?)
    equal($cache.get('flush'), nil)
  }
}.freeze

CELLS = {
  'set' => -> { check_raw('1.cntcm', 41) },
  'incr' => lambda {
    check_raw('2.cntcm', 41)
    equal($cache.incr('2.cntcm'), 42)
    equal($cache.decr('2.cntcm', 2), 40)
    equal($cache.get('2.cntcm'), '40')
  },
  'absent' => -> { equal($cache.get('3.cntan'), '0') },
  'initial' => -> { check_initial('17.cntcm') },
  'from-0' => lambda {
    equal($cache.incr('4.cntrn', 5), 5)
    equal($cache.get('4.cntrn'), '5')
  },
  'zeroed' => lambda {
    true?($cache.add('18.cntcm', '0', nil, RAW))
    equal($cache.incr('18.cntcm', 5), 5)
    equal($cache.decr('18.cntcm', 5), 0)
    equal($cache.incr('18.cntcm', 5), 5)
    equal($cache.get('18.cntcm'), '5')
  },
  'floor' => lambda {
    check_raw('5.cntcm', 5)
    equal($cache.decr('5.cntcm', 9), 0)
    equal($cache.get('5.cntcm'), '0')
  },
  'max' => lambda {
    check_raw('6.cntan', 4_294_967_295)
    equal($cache.incr('6.cntan'), 4_294_967_295)
  },
  'multi' => lambda {
    page = (0...99).to_h do |i|
      id = 5_000_000_000_000_000 + 3624 * (i / 3)
      number = i / 3 % 3 == 0 ? 0 : 40_000_003 * i
      ["#{id}.#{%w[cntcm cntrn cntan][i % 3]}", number.to_s]
    end
    $cache.multi do
      page.each { |k, v| $cache.set(k, v, nil, RAW) unless v == '0' }
    end
    equal($cache.get_multi(page.keys), page)
  },
  'columns' => lambda {
    equal($cache.get('1234.cntcm'), '111')
    equal($cache.get('1234.cntrn'), '222')
    equal($cache.get('1234.cntan'), '333')
  },
  'record' => -> { equal($cache.get('1234.weibo'), '111 222 333') },
  'forms' => lambda {
    equal($cache.get('{1234}.cntrn'), '222')
    equal($cache.get('1234|#|.cntrn'), '222')
  },
  'quiet' => -> { check_quiet('16.cntcm', '3') },
  'add' => lambda {
    true?($cache.add('7.cntcm', '1', nil, RAW))
    false?($cache.add('7.cntcm', '2', nil, RAW))
    equal($cache.get('7.cntcm'), '1')
  },
  'replace' => lambda {
    false?($cache.replace('8.cntcm', '1', nil, RAW))
    equal($cache.get('8.cntcm'), '0')
    true?($cache.set('8.cntcm', '1', nil, RAW))
    true?($cache.replace('8.cntcm', '2', nil, RAW))
    equal($cache.get('8.cntcm'), '2')
  },
  'cas' => lambda {
    check_cas('9.cntcm')
    check_record_cas
  },
  'word' => lambda {
    check_raw('10.cntcm', 41)
    error? { $cache.set('10.cntcm', 'word', nil, RAW) }
    equal($cache.get('10.cntcm'), '41')
  },
  'too-wide' => lambda {
    check_raw('11.cntcm', 41)
    error? { $cache.set('11.cntcm', '4294967296', nil, RAW) }
    equal($cache.get('11.cntcm'), '41')
  },
  'expires' => lambda {
    error? { $cache.set('12.cntcm', '1', 60, RAW) }
    equal($cache.get('12.cntcm'), '0')
  },
  'append' => lambda {
    check_raw('13.cntcm', 41)
    error? { $cache.append('13.cntcm', '1') }
    equal($cache.get('13.cntcm'), '41')
  },
  'delete' => lambda {
    check_raw('14.cntcm', 41)
    true?($cache.delete('14.cntcm'))
    equal($cache.get('14.cntcm'), '0')
    false?($cache.delete('14.cntcm'))
  },
  'flush' => lambda {
    check_raw('15.cntcm', 41)
    true?($cache.flush.all?)
    equal($cache.get('15.cntcm'), '41')
  }
}.freeze

(PART == 'items' ? ITEMS : CELLS).each do |name, call|
  call.call
  puts "ok #{name}"
rescue StandardError => e
  lines = e.backtrace.grep(/client_dalli/).map { |at| at[/:(\d+):/, 1] }
  puts "not ok #{name} lines #{lines.join(', ')}: #{e.class}: " \
       "#{e.message[0, 300]}"
end
