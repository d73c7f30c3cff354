// SPDX-License-Identifier: BSD-3-Clause

// gomemcache through a failover, see README.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

var cache *memcache.Client

func once(key string) bool {
	value, err := cache.Increment(key, 1)
	if err == nil {
		fmt.Println("ok", value)
		return true
	}
	fmt.Printf("error %T: %s\n", err,
		strings.Join(strings.Fields(err.Error()), " "))
	return false
}

func main() {
	cache = memcache.New(strings.Split(os.Args[3], ",")...)
	cache.Timeout = 2 * time.Second
	for _, key := range strings.Split(os.Args[4], ",") {
		if !once(key) {
			continue
		}
		fmt.Println("key", key)
		for {
			once(key)
			time.Sleep(20 * time.Millisecond)
		}
	}
}
