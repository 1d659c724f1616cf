// Package spelling owns the choice of the known word that a mistyped one probably
// stands for. It must not know which words there are.
package spelling

import (
	"strings"

	"skep/spec/mail"
)

// Nearest returns the option that word most probably stands for, or "".
func Nearest(word string, options []string) string {
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
