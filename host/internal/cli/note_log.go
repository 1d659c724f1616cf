package cli

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/logline"
)

// noteLog is a log handler for people: time, message, and what belongs to it.
type noteLog struct {
	app   *app
	level slog.Leveler
	style style
	attrs string
	group string
}

// forPerson reports whether a person reads the notes, and no program.
func (a *app) forPerson() bool { return a.env.StderrTerminal && !a.json() }

// logsText reports whether the log of a host is for people, as its file wants it.
func (a *app) logsText(t config.Telemetry) bool {
	switch t.LogFormat {
	case "text":
		return true
	case "json":
		return false
	}
	return a.forPerson()
}

// logger returns the log of a host: one line a record for people, JSON for
// everything else.
func (a *app) logger(text bool, level slog.Leveler) *slog.Logger {
	if text {
		return a.noteLogger(level)
	}
	return slog.New(slog.NewJSONHandler(logline.Writer{To: a.env.Stderr}, &slog.HandlerOptions{Level: level}))
}

func (a *app) noteLogger(level slog.Leveler) *slog.Logger {
	return slog.New(noteLog{app: a, level: level, style: a.noteStyle()})
}

func (h noteLog) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

func (h noteLog) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(h.style.dim(r.Time.Format(time.TimeOnly)) + "  ")
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString(h.style.red("error") + "  ")
	case r.Level >= slog.LevelWarn:
		b.WriteString(h.style.yellow("warning") + "  ")
	}
	b.WriteString(oneLine(r.Message) + h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(h.attr(a))
		return true
	})
	h.app.notef("%s", b.String())
	return nil
}

func (h noteLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs += h.attr(a)
	}
	return h
}

func (h noteLog) WithGroup(name string) slog.Handler {
	h.group += name + "."
	return h
}

func (h noteLog) attr(a slog.Attr) string {
	value := a.Value.Resolve()
	if a.Key == "" && value.Kind() != slog.KindGroup {
		return ""
	}
	if fields, ok := value.Any().(map[string]any); ok {
		text := ""
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			text += h.attr(slog.Any(key, fields[key]))
		}
		return text
	}
	return "  " + h.style.dim(inLine(h.group+a.Key)+"=") + inLine(value.String())
}
