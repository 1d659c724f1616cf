package audit

import (
	"encoding/hex"
	"errors"
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
	Hosts   []string
	Address string
	// Damage is the first place where the log is not whole, nil for none.
	Damage *Damage
	// Missing are the heads that were recorded of it and that it lacks, each with the first log that has it.
	Missing []RecordedHead
}

// Whole reports whether the log is as it was written, as far as is known.
func (r LogReport) Whole() bool { return r.Damage == nil && len(r.Missing) == 0 }

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
	t := together{prevs: prevs, claims: map[string][]claim{}, addresses: map[string]string{}}
	// A head is on disk in its log before it is recorded elsewhere. So all that are recorded are read
	// before the logs are searched for them: hosts may be writing.
	for i, file := range files {
		r := LogReport{File: file.Path}
		if file.Host != "" {
			r.Hosts = []string{file.Host}
		}
		t.report.Logs = append(t.report.Logs, r)
		if err := t.readClaims(i); err != nil {
			return TogetherReport{}, err
		}
	}
	for _, h := range stored {
		t.addClaim(h, -1, 0)
	}
	for _, list := range t.claims {
		slices.SortStableFunc(list, func(a, b claim) int { return int(a.seq - b.seq) })
		t.report.Heads += len(list)
	}
	for i := range files {
		if err := t.verifyLog(i); err != nil {
			return TogetherReport{}, err
		}
	}
	t.findMissing()
	return t.report, nil
}

// together verifies several logs.
type together struct {
	prevs  []string
	report TogetherReport
	// claims are the recorded heads by host, ordered by their numbers.
	claims    map[string][]claim
	addresses map[string]string
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

func (t *together) addClaim(h Head, log int, entry int64) {
	c := claim{seq: h.Seq, entry: entry, at: h.At, log: log}
	if sum, err := hex.DecodeString(h.Hash); err == nil && len(sum) == len(c.hash) {
		c.hash = [32]byte(sum)
	}
	t.claims[h.Host] = append(t.claims[h.Host], c)
	t.addresses[h.Host] = h.Address
}

// readClaims reads the heads of others and the names in a log.
func (t *together) readClaims(log int) error {
	r := &t.report.Logs[log]
	err := Entries(r.File, func(seq int64, e Entry) {
		if (e.Act == ActJoin || e.Act == ActHeads) && !slices.Contains(r.Hosts, e.Target) {
			r.Hosts = append(r.Hosts, e.Target)
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
func (t *together) verifyLog(log int) error {
	r := &t.report.Logs[log]
	damaged := func(d *Damage) {
		if r.Damage == nil {
			r.Damage = d
		}
	}
	v := verifier{anyStart: true, onDamage: damaged}
	v.onEntry = func(l line) {
		if l.Seq == v.first && !slices.Contains(t.prevs, l.Prev) {
			if reason := new(verifier).checkFirst(l); reason != "" {
				damaged(&Damage{File: r.File, Reason: reason})
			}
		}
		t.markFound(r.Hosts, v.end)
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
func (t *together) markFound(hosts []string, end chainEnd) {
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

// findMissing reports the claims that were not found. Those before the first entry of a log, which
// follows archived ones, are not looked for.
func (t *together) findMissing() {
	for _, host := range slices.Sorted(maps.Keys(t.claims)) {
		list := t.claims[host]
		r := t.logOf(host)
		if r == nil {
			t.report.Absent = append(t.report.Absent, t.recorded(host, list[len(list)-1]))
			continue
		}
		r.Address = t.addresses[host]
		for i, c := range list {
			if c.found || c.seq < r.First || i > 0 && list[i-1].seq == c.seq && list[i-1].hash == c.hash {
				continue
			}
			r.Missing = append(r.Missing, t.recorded(host, c))
		}
	}
}

// logOf is the log of a host, the last one of several, nil for none.
func (t *together) logOf(host string) *LogReport {
	for i := len(t.report.Logs) - 1; i >= 0; i-- {
		if slices.Contains(t.report.Logs[i].Hosts, host) {
			return &t.report.Logs[i]
		}
	}
	return nil
}

func (t *together) recorded(host string, c claim) RecordedHead {
	out := RecordedHead{Head: Head{host, t.addresses[host], c.seq, hex.EncodeToString(c.hash[:]), c.at}, Entry: c.entry}
	if c.log >= 0 {
		out.File = t.report.Logs[c.log].File
	}
	return out
}
