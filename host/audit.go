package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"skep/host/internal/audit"
)

// openAudit opens the log of what matters to the host's security.
func (h *Host) openAudit() (err error) {
	h.audit, err = audit.Open(filepath.Join(h.opt.DataDir, audit.Name), audit.Options{Logger: h.log})
	return err
}

// begun records that the host runs, and with which configuration.
func (h *Host) begun() error {
	err := h.audit.Record(audit.Entry{
		Act: "host.start", Outcome: audit.Done, Target: h.configDigest(),
		Reason: "skep " + h.opt.Version + " listens on " + h.Addr(),
	})
	h.recorded = err == nil
	return err
}

// ended records that it does not any more, and closes the log. The head is
// logged, so that whoever keeps the host's log can tell later whether entries
// were cut off the end.
func (h *Host) ended() error {
	if h.audit == nil {
		return nil
	}
	var err error
	if h.recorded {
		err = h.audit.Record(audit.Entry{Act: "host.stop", Outcome: audit.Done, Target: h.configDigest()})
	}
	err = errors.Join(err, h.audit.Close())
	if h.recorded {
		seq, head := h.audit.Head()
		h.log.Info("the audit log is closed", "entries", seq, "head", head)
	}
	h.audit = nil
	return err
}

func (h *Host) configDigest() string {
	cfg := h.opt.Config
	if h.defs != nil && h.defs.current().own != nil {
		cfg = h.defs.current().file.Config // a reload may have brought another one
	}
	return fmt.Sprintf("sha256:%s", cfg.Digest())
}

// record adds to the audit log what was done to a data directory, and returns
// the error of that, or why it cannot be recorded.
func (d Data) record(act, target string, done error) error {
	if _, err := os.Stat(d.Dir); err != nil {
		return done
	}
	log, err := audit.Open(filepath.Join(d.Dir, audit.Name), audit.Options{Logger: d.Logger})
	if err != nil {
		return errors.Join(done, err)
	}
	e := audit.Entry{Act: act, Outcome: audit.Done, Target: target, Principal: "local user " + strconv.Itoa(os.Getuid())}
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

// VerifyAudit verifies the audit log from its first entry to its last, also
// while a host writes to it. Prev is the hash of the entry before the first one,
// where older files were moved away; head is that of an entry that must be
// there; both may be empty. An error that is an *[AuditDamage] tells where the
// log is not whole.
func VerifyAudit(file, prev, head string) (AuditReport, error) {
	return audit.Verify(file, audit.Expect{Prev: prev, Head: head})
}

// AuditEntries hands on the entries of an audit log that are as they were written,
// oldest first. Broken, which may be nil, is told of each place in between where the
// log is not whole; the first is the error, an *[AuditDamage].
func AuditEntries(file string, each func(seq int64, e AuditEntry), broken func(*AuditDamage)) error {
	return audit.Entries(file, each, broken)
}

// AuditFile is the audit log of the directory.
func (d Data) AuditFile() string { return filepath.Join(d.Dir, audit.Name) }
