// SPDX-License-Identifier: BSD-3-Clause

// gomemcache, which speaks text: client_gomemcache PORT text items|cells. A
// value is bytes with flags 0; Increment and Decrement give uint64.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

type row struct {
	name string
	run  func()
}

var cache *memcache.Client

// What a row throws where something is not as it must be.
type wrong struct{ text string }

func need(is bool, form string, what ...interface{}) {
	if !is {
		panic(wrong{fmt.Sprintf(form, what...)})
	}
}

func ok(err error) {
	need(err == nil, "error: %v", err)
}

func is(err, wanted error) {
	need(err == wanted, "error: %v, wanted: %v", err, wanted)
}

func fails(err error) {
	need(err != nil, "no error")
}

func item(key, value string) *memcache.Item {
	return &memcache.Item{Key: key, Value: []byte(value)}
}

func holds(key, value string) {
	found, err := cache.Get(key)
	ok(err)
	need(bytes.Equal(found.Value, []byte(value)) && found.Flags == 0,
		"got %.200q, wanted %.200q", found.Value, value)
}

func nothing(key string) {
	_, err := cache.Get(key)
	is(err, memcache.ErrCacheMiss)
}

func set(key, value string) {
	ok(cache.Set(item(key, value)))
	holds(key, value)
}

func incr(key string, by, wanted uint64) {
	got, err := cache.Increment(key, by)
	ok(err)
	need(got == wanted, "incr: %d, wanted %d", got, wanted)
}

func decr(key string, by, wanted uint64) {
	got, err := cache.Decrement(key, by)
	ok(err)
	need(got == wanted, "decr: %d, wanted %d", got, wanted)
}

func add(key string) {
	ok(cache.Add(item(key, "1")))
	is(cache.Add(item(key, "2")), memcache.ErrNotStored)
	holds(key, "1")
}

func replace(key string) {
	is(cache.Replace(item(key, "1")), memcache.ErrNotStored)
	ok(cache.Set(item(key, "1")))
	ok(cache.Replace(item(key, "2")))
	holds(key, "2")
}

func cas(key string) {
	set(key, "5")
	first, err := cache.Get(key)
	ok(err)
	second, err := cache.Get(key)
	ok(err)
	first.Value = []byte("6")
	ok(cache.CompareAndSwap(first))
	second.Value = []byte("7")
	is(cache.CompareAndSwap(second), memcache.ErrCASConflict)
	holds(key, "6")
}

// Each key of values comes with its value, and nothing else.
func multi(keys []string, values map[string]string) {
	got, err := cache.GetMulti(keys)
	ok(err)
	need(len(got) == len(values), "%d of %d came", len(got), len(values))
	for key, value := range values {
		found := got[key]
		need(found != nil && string(found.Value) == value,
			"%s is not %s", key, value)
	}
}

// Bytes that do not compress.
func noise(count int) string {
	data := make([]byte, count)
	rand.New(rand.NewSource(int64(count))).Read(data)
	return string(data)
}

var items = []row{
	{"text", func() { set("text", "plain text") }},
	{"unicode", func() { set("unicode", "\u5fae\u535a \u00e9") }},
	{"bytes", func() {
		var all [1024]byte
		for i := range all {
			all[i] = byte(i)
		}
		set("bytes", string(all[:]))
	}},
	{"empty", func() { set("empty", "") }},
	{"miss", func() { nothing("miss") }},
	{"add", func() { add("add") }},
	{"replace", func() { replace("replace") }},
	{"cas", func() { cas("cas") }},
	{"number", func() {
		set("number", "10")
		incr("number", 5, 15)
		decr("number", 3, 12)
		holds("number", "12")
	}},
	{"floor", func() {
		set("floor", "5")
		decr("floor", 9, 0)
		holds("floor", "0")
	}},
	{"wide", func() {
		set("wide", "4294967295")
		incr("wide", 1, 4294967296)
		holds("wide", "4294967296")
	}},
	{"word", func() {
		set("word", "word")
		_, err := cache.Increment("word", 1)
		fails(err)
		holds("word", "word")
	}},
	{"no-number", func() {
		_, err := cache.Increment("no-number", 1)
		is(err, memcache.ErrCacheMiss)
		nothing("no-number")
	}},
	{"delete", func() {
		set("delete", "x")
		ok(cache.Delete("delete"))
		nothing("delete")
		is(cache.Delete("delete"), memcache.ErrCacheMiss)
	}},
	{"touch", func() {
		set("touch", "x")
		ok(cache.Touch("touch", 1000))
		is(cache.Touch("touch-none", 1000), memcache.ErrCacheMiss)
	}},
	{"expired", func() {
		past := item("expired", "x")
		past.Expiration = 1000000000
		ok(cache.Set(past))
		nothing("expired")
	}},
	{"multi", func() {
		values := map[string]string{}
		var keys []string
		for i := 0; i < 120; i++ {
			key := fmt.Sprintf("multi-%d", i)
			keys = append(keys, key)
			if i < 100 {
				values[key] = strconv.Itoa(i)
				ok(cache.Set(item(key, values[key])))
			}
		}
		multi(keys, values)
	}},
	{"large", func() { set("large", noise(1000000)) }},
	{"too-large", func() {
		set("too-large-not", "x")
		fails(cache.Set(item("too-large", noise(1<<21))))
		holds("too-large-not", "x")
	}},
	{"long-key", func() {
		set(("long-key" + strings.Repeat("k", 250))[:250], "x")
	}},
	{"flush", func() {
		set("flush", "x")
		ok(cache.FlushAll())
		nothing("flush")
	}},
}

var cells = []row{
	{"set", func() { set("1.cntcm", "41") }},
	{"incr", func() {
		set("2.cntcm", "41")
		incr("2.cntcm", 1, 42)
		decr("2.cntcm", 2, 40)
		holds("2.cntcm", "40")
	}},
	{"absent", func() { holds("3.cntan", "0") }},
	{"from-0", func() {
		incr("4.cntrn", 5, 5)
		holds("4.cntrn", "5")
	}},
	{"zeroed", func() {
		set("18.cntcm", "0")
		incr("18.cntcm", 5, 5)
		decr("18.cntcm", 5, 0)
		incr("18.cntcm", 5, 5)
		holds("18.cntcm", "5")
	}},
	{"floor", func() {
		set("5.cntcm", "5")
		decr("5.cntcm", 9, 0)
		holds("5.cntcm", "0")
	}},
	{"max", func() {
		set("6.cntan", "4294967295")
		incr("6.cntan", 1, 4294967295)
	}},
	{"multi", func() {
		suffixes := []string{"cntcm", "cntrn", "cntan"}
		values := map[string]string{}
		var keys []string
		for i := 0; i < 99; i++ {
			id := 5000000000000000 + 3624*int64(i/3)
			key := fmt.Sprintf("%d.%s", id, suffixes[i%3])
			keys = append(keys, key)
			values[key] = "0"
			if i/3%3 != 0 {
				values[key] = strconv.FormatInt(40000003*int64(i), 10)
				ok(cache.Set(item(key, values[key])))
			}
		}
		multi(keys, values)
	}},
	{"columns", func() {
		holds("1234.cntcm", "111")
		holds("1234.cntrn", "222")
		holds("1234.cntan", "333")
	}},
	{"record", func() { holds("1234.weibo", "111 222 333") }},
	{"forms", func() {
		holds("{1234}.cntrn", "222")
		holds("1234|#|.cntrn", "222")
	}},
	{"add", func() { add("7.cntcm") }},
	{"replace", func() { replace("8.cntcm") }},
	{"cas", func() { cas("9.cntcm") }},
	{"word", func() {
		set("10.cntcm", "41")
		fails(cache.Set(item("10.cntcm", "word")))
		holds("10.cntcm", "41")
	}},
	{"too-wide", func() {
		set("11.cntcm", "41")
		fails(cache.Set(item("11.cntcm", "4294967296")))
		holds("11.cntcm", "41")
	}},
	{"expires", func() {
		timed := item("12.cntcm", "1")
		timed.Expiration = 60
		fails(cache.Set(timed))
		holds("12.cntcm", "0")
	}},
	{"delete", func() {
		set("14.cntcm", "41")
		ok(cache.Delete("14.cntcm"))
		holds("14.cntcm", "0")
		is(cache.Delete("14.cntcm"), memcache.ErrCacheMiss)
	}},
	{"flush", func() {
		set("15.cntcm", "41")
		ok(cache.FlushAll())
		holds("15.cntcm", "41")
	}},
}

// Runs the row; nil where all was as it must be.
func try(run func()) (err error) {
	defer func() {
		if why, is := recover().(wrong); is {
			err = errors.New(why.text)
		}
	}()
	run()
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: client_gomemcache PORT text PART")
		os.Exit(2)
	}
	cache = memcache.New("127.0.0.1:" + os.Args[1])
	cache.Timeout = time.Minute
	rows := items
	if os.Args[3] == "cells" {
		rows = cells
	}
	for _, row := range rows {
		if err := try(row.run); err != nil {
			fmt.Println("not ok", row.name, err)
		} else {
			fmt.Println("ok", row.name)
		}
	}
}
