// Package loglevel owns which records the parts of a host log: those of the level of its file, or of
// a level that an operator has set for a while. It must not know how records are written, nor who may
// set a level.
package loglevel

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Times for which a level may be set.
const (
	MinTime     = time.Second
	MaxTime     = 24 * time.Hour
	DefaultTime = 10 * time.Minute
)

// SetLevel is the level of a component that is set for a while.
type SetLevel struct {
	Component string
	Level     slog.Level
	Until     time.Time
}

// Levels are the levels of a host's components. Nothing of it is stored: a host that is started again
// has the level of its file. It is safe for concurrent use.
type Levels struct {
	base slog.Leveler
	now  func() time.Time

	mu         sync.Mutex
	components []string
	// set are the set levels by component, nil for none; a map is replaced and never changed, so
	// that a record that is left out takes no lock.
	set atomic.Pointer[map[string]SetLevel]
}

// New returns levels of which none is set. base is the level of the file.
func New(base slog.Leveler, now func() time.Time) *Levels { return &Levels{base: base, now: now} }

// Logger returns a log for a component.
func (l *Levels) Logger(log *slog.Logger, component string) *slog.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, has := slices.BinarySearch(l.components, component); !has {
		l.components = slices.Insert(l.components, at, component)
	}
	return slog.New(handler{next: log.Handler(), levels: l, component: component})
}

// Base returns the level of the file.
func (l *Levels) Base() slog.Level { return l.base.Level() }

// Components lists the components, in order.
func (l *Levels) Components() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.components)
}

// List lists the levels that are set now, by component.
func (l *Levels) List() (list []SetLevel) {
	all := l.set.Load()
	if all == nil {
		return nil
	}
	now := l.now()
	for _, one := range *all {
		if now.Before(one.Until) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b SetLevel) int { return cmp.Compare(a.Component, b.Component) })
	return list
}

// Check returns why no level can be set for a component, or nil. The empty name means all.
func (l *Levels) Check(component string) error {
	all := l.Components()
	if component == "" || slices.Contains(all, component) {
		return nil
	}
	return fmt.Errorf("%q is no component of this host: it has %s", component, strings.Join(all, ", "))
}

// Set sets the level of a component that is there, or of all for an empty name, for a time.
func (l *Levels) Set(component string, level slog.Level, length time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.components
	if component != "" {
		names = []string{component}
	}
	set := map[string]SetLevel{}
	for _, one := range l.List() { // without levels whose time is over
		set[one.Component] = one
	}
	for _, name := range names {
		set[name] = SetLevel{name, level, l.now().Add(length)}
	}
	l.set.Store(&set)
}

// find returns the set level of a component.
func (l *Levels) find(component string) (slog.Level, bool) {
	all := l.set.Load()
	if all == nil {
		return 0, false
	}
	one, has := (*all)[component]
	return one.Level, has && l.now().Before(one.Until)
}

// Parse reads the name of a level.
func Parse(name string) (slog.Level, error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if Name(level) == name {
			return level, nil
		}
	}
	return 0, fmt.Errorf("level %q is none of debug, info, warn, error", name)
}

// Name is the name of a level, as in the file.
func Name(level slog.Level) string { return strings.ToLower(level.String()) }
