package rest

import (
	"net/url"
	"strconv"
)

// param reads a value of the query; it is empty when there is none. A name that stands
// there twice is refused.
func (c *call) param(name string) (string, error) {
	if c.query == nil {
		var err error
		if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
			return "", badRequest("the query of the URL cannot be read: %v", err)
		}
	}
	if n := len(c.query[name]); n > 1 {
		return "", badRequest("%s stands %d times in the query", name, n)
	}
	value := c.query.Get(name)
	if value != "" {
		c.asked = append(c.asked, name)
	}
	return value, nil
}

// maxCursor is the largest number that every reader of JSON holds exactly.
const maxCursor = 1 << 53

// intParam reads a number from least to most in the query.
func (c *call) intParam(name string, def, least, most int64) (int64, error) {
	text, err := c.param(name)
	if err != nil || text == "" {
		return def, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badRequest("%s must be a number from %d to %d", name, least, most)
	}
	return n, nil
}

// boolParam reads true or false in the query; it is false when there is neither.
func (c *call) boolParam(name string) (bool, error) {
	switch text, err := c.param(name); {
	case err != nil, text == "", text == "false":
		return false, err
	case text == "true":
		return true, nil
	}
	return false, badRequest("%s must be true or false", name)
}
