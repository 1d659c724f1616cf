package model

import (
	"fmt"
	"io"
	"log/slog"
)

// Key is a provider's key. No encoder and no print verb shows it.
type Key string

const redacted = "[secret]"

// Format keeps every verb of package fmt from printing the key.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps package slog from logging the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps encoders from writing the key.
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
