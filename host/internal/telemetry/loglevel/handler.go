package loglevel

import (
	"context"
	"log/slog"
)

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
