package postgres

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The statements of the store are those that the embedded engine runs; translate gives them
// the server's form. It is no translator of SQL: what it must know are the few forms in which
// the store's own texts differ, and a test of the store prepares all of them.
func translate(text string) string {
	text = indexed.ReplaceAllString(text, "")
	text = joined.ReplaceAllString(text, "JOIN $1 $2")
	text = words.Replace(text)
	n := 0
	return placeholder.ReplaceAllStringFunc(text, func(mark string) string {
		n++
		if len(mark) > 1 {
			return "$" + mark[1:]
		}
		return "$" + strconv.Itoa(n)
	})
}

var (
	indexed     = regexp.MustCompile(`\s+INDEXED BY \w+`)
	joined      = regexp.MustCompile(`CROSS JOIN (\w+(?: \w+)?)\s+(ON|USING)`)
	placeholder = regexp.MustCompile(`\?\d*`)
	words       = strings.NewReplacer(
		"x''", `'\x'::bytea`,
		"x'FF'", `'\xff'::bytea`,
		"max(0, ", "greatest(0, ",
		"max(t.day, ", "greatest(t.day, ",
		"max(coalesce((", "greatest(coalesce((",
		"CAST(tid AS BLOB)", "int8send(tid)",
	)
)

// withNumber makes an INSERT take the number of its row as its last argument, if the table
// numbers its rows and the text gives no number. It returns the table, "" for another text.
func withNumber(text string, numbers map[string]string) (numberedText, table string) {
	found := inserted.FindStringSubmatch(text)
	if found == nil {
		return text, ""
	}
	table, columns, values, rest := found[1], found[2], found[3], found[4]
	column := numbers[table]
	if column == "" || slices.Contains(strings.Split(columns, ", "), column) {
		return text, ""
	}
	n := strings.Count(text, "$") + 1
	return "INSERT INTO " + table + " (" + columns + ", " + column + ") VALUES (" + values + ", $" + strconv.Itoa(n) + ")" + rest, table
}

var inserted = regexp.MustCompile(`^INSERT INTO (\w+) \(([^)]*)\)\s+VALUES \(([^)]*)\)((?s).*)$`)

// fromStart makes a statement that lists names behind a bound begin at the first of them. The
// embedded engine takes the number 0 for a bound that is less than every name, the empty one
// too.
func fromStart(text string) string { return behind.ReplaceAllString(text, " >= $1") }

var behind = regexp.MustCompile(` > (\$|\(\$)`)
