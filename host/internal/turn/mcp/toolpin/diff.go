package toolpin

import (
	"slices"
	"strings"
)

// maxCompared is the largest number of lines that are compared. Longer files are shown as
// fully removed and added.
const maxCompared = 3000

// contextLines is the number of lines shown around a change.
const contextLines = 3

// Diff compares two files by lines: removed lines start with "-", new ones with "+". It is
// empty if the files are equal.
func Diff(before, after []byte) string {
	if string(before) == string(after) {
		return ""
	}
	a, b := lines(before), lines(after)
	return formatEdits(edits(a, b))
}

func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// edit is a line with its mark.
type edit struct {
	mark byte
	line string
}

// edits returns the edits from a to b by the longest common subsequence.
func edits(a, b []string) (out []edit) {
	if len(a) > maxCompared || len(b) > maxCompared {
		return append(markLines('-', a), markLines('+', b)...)
	}
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, edit{' ', a[i]})
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, edit{'-', a[i]})
			i++
		default:
			out = append(out, edit{'+', b[j]})
			j++
		}
	}
	return slices.Concat(out, markLines('-', a[i:]), markLines('+', b[j:]))
}

func markLines(mark byte, all []string) (out []edit) {
	for _, line := range all {
		out = append(out, edit{mark, line})
	}
	return out
}

// formatEdits prints the changes and the lines around them.
func formatEdits(all []edit) string {
	var b strings.Builder
	skipped := false
	for i, e := range all {
		near := all[max(0, i-contextLines):min(len(all), i+contextLines+1)]
		if !slices.ContainsFunc(near, func(e edit) bool { return e.mark != ' ' }) {
			skipped = true
			continue
		}
		if skipped && b.Len() > 0 {
			b.WriteString("…\n")
		}
		skipped = false
		b.WriteString(string(e.mark) + e.line + "\n")
	}
	return b.String()
}
