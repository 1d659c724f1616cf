package config

import (
	"slices"
	"strings"

	"skep/spec/mail"
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
	return nearest(key, known)
}

// nearest returns the option that word most probably stands for, or "".
func nearest(word string, options []string) string {
	best, bestDistance := "", 1+max(1, min(3, len(word)/3))
	if len(word) > mail.MaxName {
		return ""
	}
	for _, option := range options {
		if option == word || len(option) > mail.MaxName || max(len(word)-len(option), len(option)-len(word)) >= bestDistance {
			continue
		}
		if d := Distance(strings.ToLower(word), strings.ToLower(option), 1); d < bestDistance {
			best, bestDistance = option, d
		}
	}
	return best
}

// Distance counts the insertions, deletions and replacements of bytes that make a
// into b. An exchange of neighbours costs swap: 1, or 2 where it is no edit of its own.
func Distance(a, b string, swap int) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+swap)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
