package cluster

import (
	"testing"
	"time"

	"skep/host/internal/store/pgtest"
)

// TestServerClock: a clock jumps forward to the server's time, waits for a server that is behind at half speed, and
// takes for exact what lies within the time of the question.
func TestServerClock(t *testing.T) {
	t.Parallel()
	own := &clock{time.Unix(1000, 0)}
	c := &serverClock{own: func() time.Time { return own.now }}
	read := func(server time.Time, took time.Duration) {
		asked := own.now
		own.pass(took)
		c.set(server, asked, own.now)
	}
	want := func(at time.Time, when string) {
		t.Helper()
		if got := c.Now(); !got.Equal(at) {
			t.Errorf("%s it is %v, want %v", when, got.UTC(), at.UTC())
		}
	}
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	read(noon, time.Second)
	want(noon, "at first")
	own.pass(time.Minute)
	want(noon.Add(time.Minute), "a minute later")
	read(noon.Add(time.Minute), 2*time.Second)
	want(noon.Add(62*time.Second), "after an answer within the time of the question")
	own.pass(time.Second)
	want(noon.Add(63*time.Second), "a second later")

	one := noon.Add(time.Hour)
	read(one, 0)
	want(one, "after a jump of the server's clock")
	read(one.Add(-time.Minute), 0)
	want(one, "after it went back")
	own.pass(time.Minute)
	want(one.Add(30*time.Second), "while the server catches up")
	read(one, 0)
	want(one.Add(30*time.Second), "after another reading")
	own.pass(time.Minute)
	want(one.Add(time.Minute), "once the server has caught up")
	own.pass(time.Minute)
	want(one.Add(2*time.Minute), "afterwards")
}

// TestClocksApart: hosts whose own clocks are hours apart have the server's time, take no slots of each other, and fence
// one that is silent after a TTL, not before.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	var hosts []*testHost
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		hosts = append(hosts, joinAt(t, dsn, time.Now().Add(skew), "", ""))
	}
	settle(t, hosts...)
	wantShares(t, hosts...)
	for range 2 * int(testTTL/testBeat) {
		for _, h := range hosts {
			h.step(t)
		}
	}
	wantShares(t, hosts...)
	for _, h := range hosts {
		if c := h.Counts(); c.Fenced != 0 || c.LateBeats != 0 {
			t.Errorf("host %d counts %+v", h.opts.HID, c)
		}
		if off := time.Since(h.Now()); off.Abs() > 30*time.Minute {
			t.Errorf("host %d is %v behind the server, which runs on this machine", h.opts.HID, off)
		}
	}
	for n := range int(testTTL/testBeat) - 1 {
		hosts[0].step(t)
		hosts[2].step(t)
		if hosts[0].Counts().Fenced+hosts[2].Counts().Fenced != 0 {
			t.Errorf("a host is fenced after %d beats", n+1)
		}
	}
	for range 2 {
		hosts[0].step(t)
		hosts[2].step(t)
	}
	wantShares(t, hosts[0], hosts[2])
}
