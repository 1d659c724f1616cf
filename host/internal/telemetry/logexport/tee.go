package logexport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// maxText bounds a text of a record, in bytes.
const maxText = 2048

// tee hands records to a log, and what can be sent of them to another one.
type tee struct {
	local, remote slog.Handler
	withOutput    bool
}

// Enabled implements [slog.Handler].
func (t tee) Enabled(ctx context.Context, level slog.Level) bool { return t.local.Enabled(ctx, level) }

// Handle implements [slog.Handler].
func (t tee) Handle(ctx context.Context, r slog.Record) error {
	err := t.local.Handle(ctx, r) // first: it has the line whatever becomes of the other
	sent := slog.NewRecord(r.Time, r.Level, plainText(r.Message), 0)
	r.Attrs(func(a slog.Attr) bool {
		sent.AddAttrs(t.plain(a))
		return true
	})
	return errors.Join(err, t.remote.Handle(ctx, sent))
}

// WithAttrs implements [slog.Handler].
func (t tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tee{t.local.WithAttrs(attrs), t.remote.WithAttrs(t.plainAll(attrs)), t.withOutput}
}

// WithGroup implements [slog.Handler].
func (t tee) WithGroup(name string) slog.Handler {
	return tee{t.local.WithGroup(name), t.remote.WithGroup(plainText(name)), t.withOutput}
}

func (t tee) plainAll(attrs []slog.Attr) []slog.Attr {
	list := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		list[i] = t.plain(a)
	}
	return list
}

// plain returns an attribute with the value that a log in JSON has of it: types hide there what must not
// be logged, which the bridge would print by reflection.
func (t tee) plain(a slog.Attr) slog.Attr {
	a.Key = plainText(a.Key)
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		v = slog.GroupValue(t.plainAll(v.Group())...)
	case slog.KindString:
		v = slog.StringValue(plainText(v.String()))
	case slog.KindTime:
		v = slog.StringValue(v.Time().Format(time.RFC3339Nano))
	case slog.KindAny:
		v = slog.StringValue(t.encode(v.Any()))
	}
	a.Value = v
	return a
}

// encode encodes a value, or withholds what must stay in the host. One that panics becomes the text
// that slog's own handlers have for it.
func (t tee) encode(value any) (text string) {
	if _, stays := value.(interface{ KeepInHost() }); stays && !t.withOutput {
		return "[not sent]"
	}
	defer func() {
		if why := recover(); why != nil {
			text = plainText(fmt.Sprintf("!PANIC: %v", why))
			if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
				text = "<nil>"
			}
		}
	}()
	return plainText(encodeAny(value))
}

// encodeAny encodes a value as [slog.JSONHandler] does.
func encodeAny(value any) string {
	_, encodes := value.(json.Marshaler)
	if err, is := value.(error); is && !encodes {
		return err.Error()
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprintf("!ERROR:%v", err)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	var plain string
	if json.Unmarshal([]byte(text), &plain) == nil {
		return plain
	}
	return text
}

// plainText bounds a text, and makes it one that can be sent: a batch with another one is refused.
func plainText(text string) string {
	if len(text) > maxText {
		text = strings.Clone(text[:maxText]) // and does not keep the rest
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
