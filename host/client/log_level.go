package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// LogLevels are what a host logs.
type LogLevels struct {
	// Level is of its file, and counts for each component that has none in Set.
	Level      string        `json:"level"`
	Components []string      `json:"components"`
	Set        []SetLogLevel `json:"set"`
	// SpeaksFor is "host": others that share its store have levels of their own.
	SpeaksFor string `json:"speaks_for"`
}

// SetLogLevel is a level that is set for a while.
type SetLogLevel struct {
	Component string    `json:"component"`
	Level     string    `json:"level"`
	Until     time.Time `json:"until"`
}

const logLevelPath = "/skep/v1/log/level"

// LogLevels returns what the host logs. It takes an operator.
func (c *Client) LogLevels(ctx context.Context) (found LogLevels, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: logLevelPath}, &found)
	return found, err
}

// SetLogLevel sets the level of a component, or of all for an empty name, for a while: whole seconds,
// or the host's default for 0. It takes an operator.
func (c *Client) SetLogLevel(ctx context.Context, level, component string, length time.Duration) (now LogLevels, err error) {
	body := map[string]any{"level": level}
	if component != "" {
		body["component"] = component
	}
	if length != 0 {
		body["seconds"] = int64(length / time.Second)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return now, err
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: logLevelPath, body: text, again: true}, &now)
	return now, err
}
