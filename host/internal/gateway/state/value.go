package state

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"
)

// Load reads the JSON value of a record. It is the zero value, of version 0, if there is
// none.
func Load[T any](ctx context.Context, s Store, key Key) (value T, version int64, err error) {
	r, err := s.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return value, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(r.Value, &value)
	}
	return value, r.Version, err
}

// Change changes the JSON value of a record, again when another caller has changed it
// meanwhile. The record expires after life. An error of change is returned, and nothing is
// written; neither is a zero value where there is no record: an erasure may have removed it.
func Change[T any](ctx context.Context, s Store, key Key, life time.Duration, change func(*T) error) error {
	for {
		value, version, err := Load[T](ctx, s, key)
		if err != nil {
			return err
		}
		if err := change(&value); err != nil {
			return err
		}
		if version == 0 && reflect.ValueOf(&value).Elem().IsZero() {
			return nil
		}
		_, err = Save(ctx, s, key, version, value, life)
		if !errors.Is(err, ErrVersion) {
			return err
		}
	}
}

// Save writes a value as JSON if the stored version is version (0: there must be none), and
// returns the new one. The record expires after life.
func Save(ctx context.Context, s Store, key Key, version int64, value any, life time.Duration) (int64, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return version, err
	}
	return s.Put(ctx, Record{Key: key, Version: version, Value: text, Expires: time.Now().Add(life)})
}
