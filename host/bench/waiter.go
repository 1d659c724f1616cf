package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// waiter has something wait for the provider.
type waiter struct {
	on   *child
	cl   *http.Client
	ask  func(n int) error
	left func() (int, error)
}

// holdAndRelease has n wait, does something, and lets them go to their end.
func (w waiter) holdAndRelease(server *child, n int, meanwhile func() error) error {
	if err := w.ask(n); err != nil {
		return err
	}
	held := func() (int, error) {
		held, err := number(w.cl, server.url+"/held")
		if err != nil || held == n {
			return held, err
		}
		left, err := w.left()
		if err == nil && left == 0 {
			err = fmt.Errorf("all have ended, of %d that were to wait", n)
		}
		return held, err
	}
	if err := until(n, held); err != nil {
		return fmt.Errorf("held by the provider: %w", err)
	}
	err := meanwhile()
	released := postTo(server.url+"/release", "").expect(w.cl, "")
	if err := errors.Join(err, released); err != nil {
		return err
	}
	if err := until(0, w.left); err != nil {
		return fmt.Errorf("left after the release: %w", err)
	}
	return nil
}

// holdTimeout is how long a wave may take to come or to go.
const holdTimeout = 2 * time.Minute

// until looks at a number until it is the wanted one.
func until(want int, look func() (int, error)) error {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		got, err := look()
		if err != nil || got == want {
			return err
		}
		if time.Since(began) > holdTimeout {
			return fmt.Errorf("there are %d after %v, want %d", got, holdTimeout, want)
		}
	}
}

// number reads one from an address.
func number(cl *http.Client, url string) (int, error) {
	raw, err := getFrom(url).send(context.Background(), cl)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(raw)))
}

// postAll makes n tasks and waits for none.
func postAll(cl *http.Client, url, text string, n int) error {
	return spread(floodClients, n, func(int) error { return async(url, bodyOf(text)).expect(cl, "") })
}

// running is 1 while a task of the user runs.
func running(cl *http.Client, url string) (int, error) {
	raw, err := getFrom(url+"/status").as(benchKey).send(context.Background(), cl)
	if err != nil || bytes.Contains(raw, []byte(`"user_task_running":true`)) {
		return 1, err
	}
	return 0, nil
}

// others posts as another user, one message after the other, and returns how long
// each took.
func others(cl *http.Client, url, text string, span time.Duration) (waits []float64, err error) {
	for began := time.Now(); time.Since(began) < span; {
		at := time.Now()
		if err := message(url, bodyOf(text)).as(otherKey).expect(cl, ""); err != nil {
			return nil, err
		}
		waits = append(waits, time.Since(at).Seconds())
	}
	return waits, nil
}
