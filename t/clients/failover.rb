#!/usr/bin/ruby
# SPDX-License-Identifier: BSD-3-Clause
# dalli through a failover, see README.
require 'logger'
require 'dalli'

_, _, addresses, keys = ARGV
$stdout.sync = true
Dalli.logger = Logger.new(IO::NULL)
$cache = Dalli::Client.new(addresses.split(','), socket_timeout: 2,
                           down_retry_delay: 1)

def once(key)
  answer = $cache.incr(key, 1)
  if answer.is_a?(Integer)
    puts "ok #{answer}"
    return true
  end
  puts "error #{answer.inspect} is returned"
  false
rescue StandardError => e
  puts "error #{e.class}: #{e.message.split.join(' ')}"
  false
end

keys.split(',').each do |key|
  next unless once(key)

  puts "key #{key}"
  loop do
    once(key)
    sleep 0.02
  end
end
