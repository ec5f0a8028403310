// SPDX-License-Identifier: MIT

// A server on loopback, and, with -load SECONDS, its client: requests a second of eight connections.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const address = "127.0.0.1:48081"

//go:noinline
func handle(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "hello %s", r.URL.Path)
}

func load(seconds float64) {
	var n int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	done := make(chan bool)
	for i := 0; i < 8; i++ {
		go func() {
			for time.Now().Before(end) {
				answer, err := client.Get("http://" + address + "/x")
				if err != nil {
					break
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				atomic.AddInt64(&n, 1)
			}
			done <- true
		}()
	}
	for i := 0; i < 8; i++ {
		<-done
	}
	fmt.Printf("%.1f\n", float64(n)/seconds)
}

func main() {
	seconds := flag.Float64("load", 0, "be the client, for so long")
	flag.Parse()
	if *seconds > 0 {
		load(*seconds)
		return
	}
	http.HandleFunc("/", handle)
	http.ListenAndServe(address, nil)
}
