package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
)

var gatewayStateCases = cases{
	"records are put, replaced and deleted": stateWrites,
	"a version is not used twice":           stateVersions,
	"one of many writers wins":              stateRace,
	"keys do not mix":                       stateKeys,
	"records come in pages":                 statePages,
	"records expire":                        stateExpires,
	"limits hold":                           stateLimits,
	"the storage quota holds":               stateStorage,
	"an export names realm and gateway":     stateExport,
	"puts of the erased are refused":        stateFence,
}

// longAgo and farOff are times that no clock of a test reaches.
var (
	longAgo = time.Unix(1e9, 123456789).UTC()
	farOff  = time.Unix(8e9, 123456789).UTC()
)

func stateKey(tenant, name string) state.Key {
	return state.Key{Tenant: tenant, Gateway: "toy", Realm: "acme", Kind: "push", Name: name}
}

func putState(t *testing.T, s Store, k state.Key, value string) state.Record {
	t.Helper()
	return putRecord(t, s, state.Record{Key: k, Value: []byte(value)})
}

// putRecord writes a record and returns it with its new version.
func putRecord(t *testing.T, s Store, r state.Record) state.Record {
	t.Helper()
	version, err := s.GatewayState().Put(t.Context(), r)
	if err != nil || version <= r.Version {
		t.Fatalf("Put(%+v) = %d, %v", r.Key, version, err)
	}
	r.Version = version
	return r
}

func wantState(t *testing.T, s Store, want state.Record) {
	t.Helper()
	got, err := s.GatewayState().Get(t.Context(), want.Key)
	same(t, "record", []any{got, err}, []any{want, nil})
}

func wantNoState(t *testing.T, s Store, k state.Key) {
	t.Helper()
	_, err := s.GatewayState().Get(t.Context(), k)
	wantError(t, "Get of no record", err, state.ErrNotFound)
}

func deleteState(t *testing.T, s Store, k state.Key, version int64) {
	t.Helper()
	if err := s.GatewayState().Delete(t.Context(), k, version); err != nil {
		t.Errorf("Delete(%+v) = %v", k, err)
	}
}

// wantPutError wants a record refused, and what is stored left as it is.
func wantPutError(t *testing.T, s Store, r state.Record, want error) {
	t.Helper()
	before := footprint(t, s, r.Key.Tenant)
	_, err := s.GatewayState().Put(t.Context(), r)
	wantError(t, "Put", err, want)
	same(t, "footprint after a refusal", footprint(t, s, r.Key.Tenant), before)
}

func stateWrites(t *testing.T, s Store) {
	k := stateKey("acme", "a")
	wantNoState(t, s, k)
	deleteState(t, s, k, 0)
	deleteState(t, s, k, 7)
	r := putState(t, s, k, "one")
	wantState(t, s, r)
	wantPutError(t, s, state.Record{Key: k, Value: []byte("twice")}, state.ErrVersion)
	wantPutError(t, s, state.Record{Key: k, Version: r.Version + 1}, state.ErrVersion)
	r.Value, r.Expires = nil, farOff
	r = putRecord(t, s, r)
	wantState(t, s, r)
	wantError(t, "Delete of another version", s.GatewayState().Delete(t.Context(), k, r.Version-1), state.ErrVersion)
	wantState(t, s, r)
	deleteState(t, s, k, r.Version)
	wantNoState(t, s, k)
	putState(t, s, k, "again")
	deleteState(t, s, k, 0)
	same(t, "footprint", footprint(t, s, "acme"), swarm.Footprint{})
	wantPutError(t, s, state.Record{Key: k, Version: r.Version}, state.ErrVersion)
}

// A holder of an old version must not overwrite a record that was made anew.
func stateVersions(t *testing.T, s Store) {
	k, seen := stateKey("acme", "a"), map[int64]bool{}
	for range 20 {
		first := putState(t, s, k, "one")
		second := putRecord(t, s, first)
		if seen[first.Version] || seen[second.Version] {
			t.Fatalf("versions %d and %d after %v", first.Version, second.Version, seen)
		}
		seen[first.Version], seen[second.Version] = true, true
		deleteState(t, s, k, second.Version)
	}
}

func stateRace(t *testing.T, s Store) {
	r := putState(t, s, stateKey("acme", "a"), "0")
	var wins atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			mine := r
			mine.Value = fmt.Append(nil, i)
			_, err := s.GatewayState().Put(t.Context(), mine)
			if err == nil {
				wins.Add(1)
			} else if !errors.Is(err, state.ErrVersion) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	same(t, "writers that won", wins.Load(), int64(1))
}

// strangeKeys are keys of which each differs from another in one part, or only by where
// one part ends and the next begins.
func strangeKeys() (list []state.Key) {
	for _, p := range [][5]string{
		{"t", "g", "r", "k", "n"}, {"u", "g", "r", "k", "n"}, {"t", "h", "r", "k", "n"}, {"t", "g", "s", "k", "n"},
		{"t", "g", "r", "l", "n"}, {"t", "g", "r", "k", "m"}, {"t", "gr", "", "k", "n"}, {"", "", "", "", "n"}, {"t", "g", "rk", "n", "k"},
		{"t", "g", "r", "kn", "n"}, {"t", "g", "r", "k", "\x00\xffn"}, {"t'", "g\"", "r\n", "k%", "n_"},
	} {
		list = append(list, state.Key{Tenant: p[0], Gateway: p[1], Realm: p[2], Kind: p[3], Name: p[4]})
	}
	return list
}

func stateKeys(t *testing.T, s Store) {
	var want []state.Record
	for i, k := range strangeKeys() {
		want = append(want, putState(t, s, k, fmt.Sprint("value ", i)))
	}
	for _, r := range want {
		wantState(t, s, r)
	}
	deleteState(t, s, want[0].Key, 0)
	wantNoState(t, s, want[0].Key)
	for _, r := range want[1:] {
		wantState(t, s, r)
	}
	if _, err := s.GatewayState().Put(t.Context(), state.Record{Key: stateKey("acme", "")}); err == nil {
		t.Error("a record without a name was written")
	}
}

func statePages(t *testing.T, s Store) {
	var all []string
	for _, realm := range []string{"", "a", "b", "\xff"} {
		for _, name := range []string{"\x00", "a", "b", "c", "\xff\xff"} {
			k := stateKey("acme", name)
			k.Realm = realm
			putState(t, s, k, realm+"/"+name)
			all = append(all, realm+"/"+name)
		}
	}
	other, expired := stateKey("acme", "a"), stateKey("acme", "bb")
	other.Kind = "alias"
	putState(t, s, other, "of another kind")
	putState(t, s, stateKey("other", "a"), "of another tenant")
	putRecord(t, s, state.Record{Key: expired, Expires: longAgo})
	for _, limit := range []int{1, 3, 5, 7, 100} {
		same(t, "all realms", listState(t, s, "", limit), all)
		same(t, "a realm", listState(t, s, "b", limit), all[10:15])
		same(t, "the last realm", listState(t, s, "\xff", limit), all[15:])
	}
	same(t, "an unknown realm", listState(t, s, "c", 9), []string(nil))
}

// listState lists the values of a realm page by page.
func listState(t *testing.T, s Store, realm string, limit int) (values []string) {
	t.Helper()
	of, after := stateKey("acme", ""), state.Key{}
	of.Realm = realm
	for {
		page, err := s.GatewayState().List(t.Context(), of, after, limit)
		if err != nil || len(page) > limit {
			t.Fatalf("List = %d records, %v", len(page), err)
		}
		if len(page) == 0 {
			return values
		}
		for _, r := range page {
			wantState(t, s, r)
			values = append(values, string(r.Value))
		}
		after = page[len(page)-1].Key
	}
}

func stateExpires(t *testing.T, s Store) {
	old := putRecord(t, s, state.Record{Key: stateKey("acme", "old"), Value: []byte("v"), Expires: longAgo})
	later := putRecord(t, s, state.Record{Key: stateKey("acme", "later"), Expires: farOff})
	never := putState(t, s, stateKey("acme", "never"), "v")
	wantNoState(t, s, old.Key)
	wantPutError(t, s, old, state.ErrVersion)
	again := putRecord(t, s, state.Record{Key: old.Key, Expires: longAgo})
	if again.Version <= old.Version {
		t.Errorf("a record that took the place of version %d has version %d", old.Version, again.Version)
	}
	deleteState(t, s, old.Key, 7)
	wantPurged(t, s, longAgo, 0)
	putRecord(t, s, again0(again))
	wantPurged(t, s, longAgo, 1)
	wantState(t, s, later)
	wantPurged(t, s, farOff, 1)
	wantNoState(t, s, later.Key)
	wantState(t, s, never)
	deleteState(t, s, never.Key, 0)
	for i := range 600 { // more than an engine may purge at once
		putRecord(t, s, state.Record{Key: stateKey("acme", name(i)), Expires: longAgo})
	}
	wantPurged(t, s, farOff, 600)
	same(t, "footprint", footprint(t, s, "acme"), swarm.Footprint{})
}

// again0 is a record as it is made for the first time.
func again0(r state.Record) state.Record {
	r.Version = 0
	return r
}

func wantPurged(t *testing.T, s Store, now time.Time, want int64) {
	t.Helper()
	n, err := s.Purge(t.Context(), now)
	same(t, "purged", []any{n, err}, []any{want, nil})
}

func stateLimits(t *testing.T, s Store) {
	k := stateKey("acme", strings.Repeat("n", state.MaxName))
	r := putRecord(t, s, state.Record{Key: k, Value: bytes.Repeat([]byte("v"), state.MaxValue)})
	wantState(t, s, r)
	r.Value = append(r.Value, 'v')
	wantPutError(t, s, r, state.ErrFull)
	k.Name += "n"
	wantPutError(t, s, state.Record{Key: k}, state.ErrFull)
}

// A tenant whose storage is used up may still make records smaller.
func stateStorage(t *testing.T, s Store) {
	half := make([]byte, Storage(narrow)/2)
	first := putRecord(t, s, state.Record{Key: stateKey(narrow, "first"), Value: half})
	wantPutError(t, s, state.Record{Key: stateKey(narrow, "second"), Value: half}, state.ErrFull)
	grown := first
	grown.Value = make([]byte, 2*len(half))
	wantPutError(t, s, grown, state.ErrFull)
	putRecord(t, s, state.Record{Key: stateKey("acme", "second"), Value: grown.Value})
	first.Value = first.Value[:len(half)/2]
	first = putRecord(t, s, first)
	putRecord(t, s, state.Record{Key: stateKey(narrow, "second"), Value: half})
	first.Value = nil
	putRecord(t, s, first)

	var wg sync.WaitGroup
	for i := range 32 { // together they would be far too much
		wg.Go(func() {
			_, err := s.GatewayState().Put(t.Context(), state.Record{Key: stateKey(narrow, name(i)), Value: make([]byte, 1000)})
			if err != nil && !errors.Is(err, state.ErrFull) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if f := footprint(t, s, narrow); f.Bytes > Storage(narrow) {
		t.Errorf("the tenant has %d bytes, its quota is %d", f.Bytes, Storage(narrow))
	}
}

func stateExport(t *testing.T, s Store) {
	putState(t, s, stateKey("acme", "callback"), `{"url": 1}`)
	putState(t, s, stateKey("other", "callback"), "of another")
	lines := bodies(t, export(t, s, "acme"))
	want := `{"kind":"gateway_state","scope":"push","name":"callback","gateway":"toy","realm":"acme","data":{"url":1}}`
	same(t, "export", lines, []string{want})
	has, err := s.HasData(t.Context(), "acme")
	same(t, "HasData", []any{has, err}, []any{true, nil})
	mustErase(t, s, "acme")
	has, err = s.HasData(t.Context(), "acme")
	same(t, "HasData of the erased", []any{has, err}, []any{false, nil})
	same(t, "records of the other", len(bodies(t, export(t, s, "other"))), 1)
}

// stateFence puts records while their tenant is erased: what was put before is gone,
// what comes after is whole.
func stateFence(t *testing.T, s Store) {
	for i := range 20 {
		putState(t, s, stateKey(alice.Tenant, name(i)), "before")
	}
	done := make(chan error, 1)
	go func() { done <- s.Erase(t.Context(), alice.Tenant) }()
	for i := 100; ; i++ {
		_, err := s.GatewayState().Put(t.Context(), state.Record{Key: stateKey(alice.Tenant, name(i))})
		if err != nil && !errors.Is(err, swarm.ErrErasing) {
			t.Fatal(err)
		}
		select {
		case erased := <-done:
			if erased != nil {
				t.Fatal(erased)
			}
		default:
			continue
		}
		break
	}
	after := putState(t, s, stateKey(alice.Tenant, "after"), "after")
	wantState(t, s, after)
	for i := range 20 {
		wantNoState(t, s, stateKey(alice.Tenant, name(i)))
	}
}

func reopenState(t *testing.T, e Engine) {
	at := e.NewPlace(t)
	s := e.Open(t, at)
	r := putState(t, s, stateKey("acme", "a"), "one")
	closeStore(t, s)
	s = openAt(t, e, at)
	wantState(t, s, r)
	r.Value = []byte("two")
	wantState(t, s, putRecord(t, s, r))
}
