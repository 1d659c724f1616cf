// Package loglevel owns which records the parts of a host log: those of the level of its file, or of
// a level that an operator has set for a while. It must not know how records are written, nor who may
// set a level.
package loglevel

import (
	"cmp"
	"context"
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

// Hold is a level that is set for a while.
type Hold struct {
	Level slog.Level
	Until time.Time
}

// Levels are the levels of a host's components. Nothing of it is stored: a host that is started again
// has the level of its file. It is safe for concurrent use.
type Levels struct {
	base slog.Leveler
	now  func() time.Time

	mu         sync.Mutex
	components []string
	// held are the set levels by component, nil for none; a map is replaced and never changed, so
	// that a record that is left out takes no lock.
	held atomic.Pointer[map[string]Hold]
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

// Held returns the levels that are set now, by component.
func (l *Levels) Held() map[string]Hold {
	held, now := map[string]Hold{}, l.now()
	if all := l.held.Load(); all != nil {
		for component, h := range *all {
			if now.Before(h.Until) {
				held[component] = h
			}
		}
	}
	return held
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
	set := l.components
	if component != "" {
		set = []string{component}
	}
	held := l.Held() // without levels whose time is over
	for _, name := range set {
		held[name] = Hold{level, l.now().Add(length)}
	}
	l.held.Store(&held)
}

// find returns the set level of a component.
func (l *Levels) find(component string) (slog.Level, bool) {
	all := l.held.Load()
	if all == nil {
		return 0, false
	}
	h, has := (*all)[component]
	return h.Level, has && l.now().Before(h.Until)
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

// handler is the log of a component.
type handler struct {
	next      slog.Handler
	levels    *Levels
	component string
}

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	if least, is := h.levels.find(h.component); is {
		return level >= least
	}
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler. A record that only a set level lets through names its component.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if !h.next.Enabled(ctx, r.Level) {
		r = r.Clone()
		r.AddAttrs(slog.String("component", h.component))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.next = h.next.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	h.next = h.next.WithGroup(name)
	return h
}

// Sorted lists what is set, by component.
func Sorted(held map[string]Hold) (list []Named) {
	for component, h := range held {
		list = append(list, Named{component, h})
	}
	slices.SortFunc(list, func(a, b Named) int { return cmp.Compare(a.Component, b.Component) })
	return list
}

// Named is a level that is set, with its component.
type Named struct {
	Component string
	Hold
}
