package swarm

import (
	"errors"
	"testing"
)

// TestListPlaces: the place where a list goes on is read by hosts with the same secret alone, for a
// list of the same tasks, and has the length of any other.
func TestListPlaces(t *testing.T) {
	t.Parallel()
	places := func(secret string) listPlaces {
		p, err := newListPlaces([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	own := TaskFilter{InstanceKey: InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:alice"}, ByCost: true}
	const place = "9223372036854775807.9223372036854775807"
	sealed := places("a").seal(own, place)
	if short := places("a").seal(own, "1.1"); len(short) != len(sealed) {
		t.Errorf("places have %d and %d bytes", len(short), len(sealed))
	}
	if got, err := places("a").open(own, sealed); got != place || err != nil {
		t.Errorf("open() = %q, %v", got, err)
	}
	if got, err := places("a").open(own, places("a").seal(own, "")); got != "" || err != nil {
		t.Errorf("the start: %q, %v", got, err)
	}
	other, byAge := own, own
	other.Instance, byAge.ByCost = "user:bob", false
	for name, open := range map[string]func() (string, error){
		"another list":   func() (string, error) { return places("a").open(other, sealed) },
		"another order":  func() (string, error) { return places("a").open(byAge, sealed) },
		"another secret": func() (string, error) { return places("b").open(own, sealed) },
		"a plain place":  func() (string, error) { return places("a").open(own, place) },
		"cut":            func() (string, error) { return places("a").open(own, sealed[:8]) },
	} {
		if got, err := open(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
