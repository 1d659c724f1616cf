package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"skep/host/internal/api/audit"
	"skep/host/internal/store/cluster"
)

// record adds an act on the directory to its audit log, and returns the error of the act,
// or why it cannot be recorded.
func (d Data) record(act, target string, done error) error {
	if _, err := os.Stat(d.Dir); err != nil {
		return done
	}
	log, err := audit.Open(filepath.Join(d.Dir, audit.Name), audit.Options{Logger: d.Logger})
	if err != nil {
		return errors.Join(done, err)
	}
	e := audit.Entry{Act: act, Outcome: audit.Done, Target: target, Principal: "local user " + localUser()}
	if done != nil {
		e.Outcome, e.Reason = audit.Failed, done.Error()
	}
	return errors.Join(done, log.Record(e), log.Close())
}

// AuditReport is what [Data.VerifyAudit] has found whole.
type AuditReport = audit.Report

// AuditDamage is a place where the audit log is not as it was written.
type AuditDamage = audit.Damage

// AuditEntry is one entry of the audit log.
type AuditEntry = audit.Entry

// LoggedMessage is the message that an entry is about.
type LoggedMessage = audit.Message

// VerifyAudit verifies the audit log from its first entry to its last, also
// while a host writes to it. Prev is the hash of the entry before the first one, if older
// files were moved away; head is the hash of an entry that must be in the log; both may be
// empty. An *[AuditDamage] is the place where the log is not whole.
func VerifyAudit(file, prev, head string) (AuditReport, error) {
	return audit.Verify(file, audit.Expect{Prev: prev, Head: head})
}

// AuditTogether is what [Data.VerifyAudits] has found.
type AuditTogether = audit.TogetherReport

// AuditHead is the last entry of another host's log in an entry of a log.
type AuditHead = audit.Head

// LogReport is what was found of one of several logs.
type LogReport = audit.LogReport

// RecordedHead is an entry of a log that another log or the store names.
type RecordedHead = audit.RecordedHead

// VerifyAudits verifies the audit logs of several hosts, each by itself and by what the others have
// recorded of it; with server also by what the server of [store] has. A log may be a data directory,
// and begins with entry 1 or behind an entry whose hash is one of prevs.
func (d Data) VerifyAudits(ctx context.Context, logs, prevs []string, server bool) (AuditTogether, error) {
	var stored []audit.Head
	if server {
		found, err := cluster.ReadAuditHeads(ctx, d.Store.DSN.Reveal())
		if err != nil {
			return AuditTogether{}, fmt.Errorf("read the heads of audit logs on the server: %w", err)
		}
		for _, h := range found {
			stored = append(stored, audit.Head(h))
		}
	}
	files := make([]audit.LogFile, 0, len(logs))
	for _, log := range logs {
		path := AuditFileIn(log)
		file := audit.LogFile{Path: path}
		if filepath.Base(path) == audit.Name { // a copy beside it may be another host's
			var err error
			if file.Host, err = readAuditName(filepath.Dir(path)); err != nil {
				return AuditTogether{}, err
			}
		}
		files = append(files, file)
	}
	return audit.VerifyTogether(files, prevs, stored)
}

// AuditFileIn returns the audit log in a data directory, and any other path as it is.
func AuditFileIn(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, audit.Name)
	}
	return path
}

// AuditEntries calls each with the undamaged entries of an audit log, oldest first, and
// broken, unless it is nil, with each place where the log is not whole. The error is the
// first of these places, an *[AuditDamage].
func AuditEntries(file string, each func(seq int64, e AuditEntry), broken func(*AuditDamage)) error {
	return audit.Entries(file, each, broken)
}

// AuditFile is the audit log of the directory.
func (d Data) AuditFile() string { return filepath.Join(d.Dir, audit.Name) }

// MessageLogFile is the log of foreign messages of the directory.
func (d Data) MessageLogFile() string { return filepath.Join(d.Dir, audit.MessagesName) }

// VerifyMessageLog is [VerifyAudit] for the log of foreign messages, whose oldest files the
// host removes: without prev it may begin with any entry.
func VerifyMessageLog(file, prev, head string) (AuditReport, error) {
	return audit.Verify(file, audit.Expect{Prev: prev, Head: head, Partial: true})
}

// localUser is the number of the process's user, on Windows the SID.
func localUser() string {
	if me, err := user.Current(); err == nil {
		return me.Uid
	}
	return strconv.Itoa(os.Getuid())
}
