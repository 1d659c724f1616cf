package config

import (
	"slices"

	"skep/host/internal/spelling"
)

// otherNames are what settings are called elsewhere, as in the files of the
// reference implementation, and too far from our names to be found by spelling.
var otherNames = map[string][]string{
	"action_imports":     {"actions"},
	"agent_params":       {"params"},
	"factory":            {"source"},
	"host":               {"listen"},
	"model":              {"llm"},
	"outbound_hosts":     {"http"},
	"plugin":             {"source"},
	"port":               {"listen"},
	"targets":            {"comm_targets"},
	"task_message_limit": {"task_messages"},
	"timeout":            {"turn", "task_timeout"},
	"wall":               {"turn"},
}

// nearestKey returns the known key that an unknown one probably stands for.
func nearestKey(key string, known []string) string {
	for _, name := range otherNames[key] {
		if slices.Contains(known, name) {
			return name
		}
	}
	return spelling.Nearest(key, known)
}
