package auth

import (
	"sync"
	"testing"
	"time"
)

func TestRecentMap(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	m := NewRecentMap[int, string](time.Minute, 10, func() time.Time { return at })
	for i := range 1000 {
		m.Put(i, "x")
		if n := len(m.values.young) + len(m.values.old); n > 20 {
			t.Fatalf("%d values", n)
		}
	}
	if v, ok := m.Get(999); !ok || v != "x" {
		t.Error("the newest is forgotten")
	}
	if _, ok := m.Get(0); ok {
		t.Error("the oldest is not")
	}
	at = at.Add(59 * time.Second)
	if _, ok := m.Get(999); !ok {
		t.Error("it is forgotten early")
	}
	at = at.Add(time.Second)
	if _, ok := m.Get(999); ok {
		t.Error("it is remembered for too long")
	}
	m.Put(1, "y")
	m.Put(2, "z")
	m.Delete(1)
	if _, ok := m.Get(1); ok {
		t.Error("it is not dropped")
	}
	at = at.Add(-time.Hour)
	if _, ok := m.Get(2); ok {
		t.Error("a clock that went back keeps values")
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	m := NewRecentMap[int, int](time.Hour, 100, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				m.Put(i, i)
				if v, ok := m.Get(i); ok && v != i {
					t.Errorf("%d is %d", i, v)
				}
				m.Delete(i)
			}
		})
	}
	wg.Wait()
}
