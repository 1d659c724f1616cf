package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"skep/host/internal/filelock"
	"skep/host/internal/store/atomicfile"
)

// Names of logs in a data directory: of acts, and of the messages of other protocols.
const (
	Name         = "audit.log"
	MessagesName = "messages.log"
)

// Options of [Open]. The zero value is usable.
type Options struct {
	// MaxSize is the size in bytes at which the next file is begun, 16 MiB by
	// default.
	MaxSize int64
	// Keep bounds the older files in bytes: the oldest are removed. Zero keeps all.
	Keep int64
	// Every is the interval of writing refusals, and of syncing what [Log.Append]
	// wrote, a second by default.
	Every time.Duration
	// Sole means that no other process writes to the file. Whether it is as this process
	// left it is then checked once in each interval of [Log.Run], not before each write.
	Sole   bool
	Now    func() time.Time
	Logger *slog.Logger
	// OnEntry is called for each entry that was written, in their order. It returns at once.
	// Nil does nothing.
	OnEntry func(Entry)
}

// ErrClosed is returned by a closed log.
var ErrClosed = errors.New("the audit log is closed")

// Log is an open audit log. Its methods are safe for concurrent use.
type Log struct {
	path     string
	opt      Options
	refusals refusals
	status   writeStatus

	mu sync.Mutex
	// file is nil when the log is closed.
	file *os.File
	// size is where this process' last line ended, and last is that line.
	size int64
	last chainEnd
	// unsynced is set when the file has entries that may not be on disk.
	unsynced bool
	// checked is set while a sole writer takes the file for the one that it left.
	checked bool

	appends appends
}

// Open opens or creates the log at path. It moves a torn line at the end, which a
// crash leaves, to a file of its own and records that. Complete lines that do not
// verify stay for [Verify] to find, and are recorded too.
func Open(path string, opt Options) (*Log, error) {
	if opt.MaxSize <= 0 {
		opt.MaxSize = 16 << 20
	}
	if opt.Every <= 0 {
		opt.Every = time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	opt.Logger = opt.Logger.With("file", filepath.Base(path))
	l := &Log{path: path, opt: opt, refusals: newRefusals()}
	file, err := l.open()
	if err != nil {
		return nil, err
	}
	l.file, l.size = file, -1
	if err := l.write(nil, 0, true); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func (l *Log) open() (*os.File, error) {
	f, err := filelock.Open(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	// Others may get the head of a file that is new: its name is on disk before.
	if err := atomicfile.SyncDir(os.Open(filepath.Dir(l.path))); err != nil {
		return nil, errors.Join(fmt.Errorf("open the audit log: %w", err), f.Close())
	}
	return f, nil
}

// Record writes an entry and returns when it is on disk.
func (l *Log) Record(e Entry) error {
	return l.write([]Entry{e}, 1, true)
}

// Head returns the number and the hash of the last entry that this process has
// seen. A copy of it elsewhere shows later whether entries were cut off.
func (l *Log) Head() (seq int64, hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.seq, l.last.head
}

// Close writes the queued refusals and closes the file.
func (l *Log) Close() error {
	l.refusals.forceSummary()
	err := l.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err = errors.Join(err, l.sync(), l.file.Close())
	l.file = nil
	return err
}

// sync waits until the file is on disk. The caller holds mu.
func (l *Log) sync() error {
	if !l.unsynced {
		return nil
	}
	err := l.file.Sync()
	l.unsynced = err != nil
	return err
}

// write appends entries in one piece, and waits for the disk if it shall. A failure leaves
// acts to count in a later entry. Without entries it only finds the end.
func (l *Log) write(entries []Entry, acts int, durable bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeLocked(entries, acts, durable)
}

// writeLocked is write for a caller that holds mu.
func (l *Log) writeLocked(entries []Entry, acts int, durable bool) (err error) {
	defer func() {
		if err != nil {
			l.status.missed.Add(int64(acts)) // before retryWrite sees the error
		}
		if err != nil || len(entries) > 0 { // to find the end shows not that the log can be written
			l.noteWrite(err)
		}
	}()
	if l.file == nil {
		return ErrClosed
	}
	unlock, err := l.lock()
	if err != nil {
		return fmt.Errorf("audit log %s: %w", l.path, err)
	}
	defer unlock()
	err = l.append(entries)
	if err == nil && durable {
		err = l.sync()
	}
	if err != nil {
		return fmt.Errorf("audit log %s: %w", l.path, err)
	}
	l.showEntries(entries)
	return nil
}

func (l *Log) showEntries(entries []Entry) {
	if l.opt.OnEntry == nil {
		return
	}
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = l.opt.Now()
		}
		l.opt.OnEntry(e.truncate())
	}
}

// lock locks the file that is at the path now, and reads what other processes
// have written to it.
func (l *Log) lock() (unlock func(), err error) {
	for {
		if err := filelock.Exclusive(l.file); err != nil {
			return nil, err
		}
		free := func() { _ = filelock.Unlock(l.file) }
		if l.checked && l.size < l.opt.MaxSize {
			return free, nil
		}
		mine, err := l.file.Stat()
		if err != nil {
			free()
			return nil, err
		}
		there, err := os.Stat(l.path)
		if err == nil && os.SameFile(mine, there) {
			if err := l.catchUp(mine.Size()); err != nil {
				free()
				return nil, err
			}
			if l.size < l.opt.MaxSize || l.rotationTargetExists() {
				l.checked = l.opt.Sole
				return free, nil
			}
			err = l.rotate()
		}
		free()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := l.reopen(); err != nil {
			return nil, err
		}
	}
}

func (l *Log) reopen() error {
	f, err := l.open()
	if err != nil {
		return err
	}
	err = errors.Join(l.sync(), l.file.Close())
	l.file, l.size, l.checked = f, -1, false
	return err
}

// append encodes and writes under the file's lock. It truncates a partial write,
// so that the file holds whole lines.
func (l *Log) append(entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	end, text := l.last, []byte(nil)
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = l.opt.Now()
		}
		text = append(text, end.next(e)...)
	}
	if _, err := l.file.Write(text); err != nil {
		l.checked = false
		return errors.Join(err, filelock.Truncate(l.file, l.size))
	}
	l.last, l.size, l.unsynced = end, l.size+int64(len(text)), true
	return nil
}

// rotationTargetExists reports whether the rotated file's name is taken, as after
// the log was restarted. The file then keeps growing: no file is overwritten.
func (l *Log) rotationTargetExists() bool {
	_, err := os.Lstat(keptName(l.path, l.last.seq))
	return err == nil
}

// rotate renames a full file after its last entry, and removes the oldest files. The caller opens the next one.
func (l *Log) rotate() error {
	if err := l.sync(); err != nil {
		return err
	}
	if err := os.Rename(l.path, keptName(l.path, l.last.seq)); err != nil {
		return err
	}
	return l.removeOldest()
}

// removeOldest removes older files until those that are left fit into Keep.
func (l *Log) removeOldest() error {
	if l.opt.Keep == 0 {
		return nil
	}
	kept, err := keptFiles(l.path)
	if err != nil {
		return err
	}
	left := l.opt.Keep
	for i := len(kept) - 1; i >= 0; i-- {
		info, err := os.Stat(kept[i])
		if err != nil {
			return err
		}
		if left -= info.Size(); left < 0 {
			if err := os.Remove(kept[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
