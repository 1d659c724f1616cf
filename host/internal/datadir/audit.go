package datadir

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"skep/host/internal/api/audit"
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
