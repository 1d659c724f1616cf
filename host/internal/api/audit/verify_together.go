package audit

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"time"
)

// RecordedHead is a head that was recorded outside of its log.
type RecordedHead struct {
	Head
	// File is the log that has recorded it with its entry Entry, empty for the store that hosts share.
	File  string
	Entry int64
}

// LogFile is a log, and the name of its host if it is known from elsewhere, as from its data directory.
type LogFile struct{ Path, Host string }

// LogReport is what was found of one log among several.
type LogReport struct {
	Report
	File string
	// Hosts are the names that its host has had, the current one last. Address is where others reached it last, as far as
	// one has recorded it.
	Hosts     []string
	Address   string
	addressAt time.Time
	// Damage is the first place where the log is not whole, nil for none.
	Damage *Damage
	// Missing are the heads that were recorded of it and that it lacks, each with the first log that has it.
	Missing []RecordedHead
}

// Whole reports whether the log is as it was written, as far as is known.
func (r LogReport) Whole() bool { return r.Damage == nil && len(r.Missing) == 0 }

// Name is the current name of the log's host, empty for none.
func (r LogReport) Name() string {
	if len(r.Hosts) == 0 {
		return ""
	}
	return r.Hosts[len(r.Hosts)-1]
}

// addName makes a name the current one.
func (r *LogReport) addName(name string) {
	if name != r.Name() {
		r.Hosts = append(slices.DeleteFunc(r.Hosts, func(s string) bool { return s == name }), name)
	}
}

// TogetherReport is what was found of logs that were verified together.
type TogetherReport struct {
	Logs []LogReport
	// Heads is how many heads were looked for.
	Heads int
	// Absent has the last head of each host whose log is not among them.
	Absent []RecordedHead
}

// VerifyTogether verifies the logs of hosts that share a store: each by itself, and that each has
// the heads that the others and the store have recorded of it. Stored are the heads in the store.
// A log begins with entry 1, or behind an entry whose hash is one of prevs. What is not as it was
// written is in the report, not in the error.
func VerifyTogether(files []LogFile, prevs []string, stored []Head) (TogetherReport, error) {
	t := logGroup{prevs: prevs, claims: map[string][]claim{}, logs: map[string][]int{}, newest: map[string]Head{}}
	// A head is on disk in its log before it is recorded elsewhere. So all that are recorded are read
	// before the logs are searched for them: hosts may be writing.
	for i, file := range files {
		t.report.Logs = append(t.report.Logs, LogReport{File: file.Path})
		if err := t.readClaims(i); err != nil {
			return TogetherReport{}, err
		}
		if file.Host != "" {
			t.report.Logs[i].addName(file.Host)
		}
	}
	for _, h := range stored {
		t.addClaim(h, -1, 0)
	}
	for host, list := range t.claims {
		slices.SortStableFunc(list, func(a, b claim) int {
			return cmp.Or(cmp.Compare(a.seq, b.seq), bytes.Compare(a.hash[:], b.hash[:]))
		})
		t.report.Heads += len(list)
		t.logs[host] = t.logsOf(host)
	}
	for i := range files {
		if err := t.verifyLog(i); err != nil {
			return TogetherReport{}, err
		}
	}
	t.findTwins()
	t.findMissing()
	return t.report, nil
}

// logGroup verifies the logs of hosts that share a store.
type logGroup struct {
	prevs  []string
	report TogetherReport
	// claims are the recorded heads by host, ordered by their numbers.
	claims map[string][]claim
	// logs are the numbers of a host's logs.
	logs map[string][]int
	// newest is the newest head of each host.
	newest map[string]Head
}

// claim is a recorded head in little memory: hosts record millions in years.
type claim struct {
	seq, entry int64
	at         time.Time
	hash       [32]byte
	// log is the number of the log that recorded it, -1 for the store.
	log   int
	found bool
}

func (t *logGroup) addClaim(h Head, log int, entry int64) {
	sum, err := hex.DecodeString(h.Hash)
	if err != nil || !h.valid() {
		return // no host has written it
	}
	t.claims[h.Host] = append(t.claims[h.Host], claim{seq: h.Seq, entry: entry, at: h.At, hash: [32]byte(sum), log: log})
	if newest, ok := t.newest[h.Host]; !ok || h.At.After(newest.At) {
		t.newest[h.Host] = h
	}
}

// readClaims reads the heads of others and the names in a log.
func (t *logGroup) readClaims(log int) error {
	r := &t.report.Logs[log]
	err := Entries(r.File, func(seq int64, e Entry) {
		if e.Act == ActJoin || e.Act == ActHeads {
			r.addName(e.Target)
		}
		if e.Act == ActHeads {
			for _, h := range e.Heads {
				t.addClaim(h, log, seq)
			}
		}
	}, nil)
	var damage *Damage
	if errors.As(err, &damage) || errors.Is(err, fs.ErrNotExist) {
		return nil // verifyLog finds it again
	}
	return err
}

// verifyLog verifies a log by itself and marks the claims that it has.
func (t *logGroup) verifyLog(log int) error {
	r := &t.report.Logs[log]
	damaged := func(d *Damage) {
		if r.Damage == nil {
			r.Damage = d
		}
	}
	var hosts []string
	for host, logs := range t.logs {
		if slices.Contains(logs, log) {
			hosts = append(hosts, host)
		}
	}
	v := verifier{anyStart: true, onDamage: damaged}
	v.onEntry = func(l line) {
		if l.Seq == v.first && !slices.Contains(t.prevs, l.Prev) {
			if reason := new(verifier).checkFirst(l); reason != "" {
				damaged(&Damage{File: r.File, Reason: reason})
			}
		}
		t.markFound(hosts, v.end)
	}
	switch err := v.verifyFiles(r.File); {
	case errors.Is(err, fs.ErrNotExist):
		damaged(&Damage{File: r.File, Reason: "there is no log"})
	case err != nil:
		return err
	}
	found, err := v.report()
	var damage *Damage
	if errors.As(err, &damage) {
		damaged(damage)
	}
	r.Report = found
	return nil
}

// markFound marks the claims on an entry of a host.
func (t *logGroup) markFound(hosts []string, end chainEnd) {
	for _, host := range hosts {
		list := t.claims[host]
		i := sort.Search(len(list), func(i int) bool { return list[i].seq >= end.seq })
		for ; i < len(list) && list[i].seq == end.seq; i++ {
			if hex.EncodeToString(list[i].hash[:]) == end.head {
				list[i].found = true
			}
		}
	}
}

// findTwins reports logs of one host that have entries of the same numbers. Its log may be given in parts.
func (t *logGroup) findTwins() {
	logs := t.report.Logs
	for i := range logs {
		for j := range logs {
			a, b := &logs[i], &logs[j]
			if i != j && a.Damage == nil && a.Name() != "" && a.Name() == b.Name() && a.First <= b.Last && b.First <= a.Last && b.Entries > 0 {
				a.Damage = &Damage{File: a.File, Reason: fmt.Sprintf("it is of the same host as %s, %s, and both have entry %d: give each log once, and each host a data directory of its own", b.File, b.Name(), max(a.First, b.First))}
			}
		}
	}
}

// findMissing reports the claims that were not found. Those before the first entry of a host's logs, which
// follows archived ones, are not looked for.
func (t *logGroup) findMissing() {
	for _, host := range slices.Sorted(maps.Keys(t.claims)) {
		list, logs := t.claims[host], t.logs[host]
		if len(logs) == 0 {
			t.report.Absent = append(t.report.Absent, t.recorded(host, list[len(list)-1]))
			continue
		}
		for _, log := range logs {
			r := &t.report.Logs[log]
			if newest := t.newest[host]; r.Address == "" || newest.At.After(r.addressAt) {
				r.Address, r.addressAt = newest.Address, newest.At
			}
		}
		for i, c := range list {
			r := t.partOf(logs, c.seq)
			if c.found || r == nil || i > 0 && list[i-1].seq == c.seq && list[i-1].hash == c.hash {
				continue
			}
			r.Missing = append(r.Missing, t.recorded(host, c))
		}
	}
}

// logsOf are the logs of a host: those whose current name is the host's, or without one those that once had it. A
// directory may have begun as a copy of another's, and got a name of its own.
func (t *logGroup) logsOf(host string) (current []int) {
	var earlier []int
	for i, r := range t.report.Logs {
		switch {
		case r.Name() == host:
			current = append(current, i)
		case slices.Contains(r.Hosts, host):
			earlier = append(earlier, i)
		}
	}
	if current == nil {
		return earlier
	}
	return current
}

// partOf is the log that entry seq of a host belongs to, nil if it is before the first one of all.
func (t *logGroup) partOf(logs []int, seq int64) (part *LogReport) {
	for _, i := range logs {
		if r := &t.report.Logs[i]; r.First <= seq && (part == nil || r.First > part.First) {
			part = r
		}
	}
	return part
}

func (t *logGroup) recorded(host string, c claim) RecordedHead {
	out := RecordedHead{Head: Head{host, t.newest[host].Address, c.seq, hex.EncodeToString(c.hash[:]), c.at}, Entry: c.entry}
	if c.log >= 0 {
		out.File = t.report.Logs[c.log].File
	}
	return out
}
