package schema_test

import (
	"bytes"
	"strings"
)

// choices turns bytes into decisions, so that a fuzzer that mutates bytes mutates
// the structure of a document. Bytes that are used up read as 0, and decision 0 is
// always the valid one: no bytes give a valid document.
type choices struct {
	rest []byte
}

// pick returns a decision out of n.
func (c *choices) pick(n int) int {
	if len(c.rest) == 0 {
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return int(b) % n
}

func (c *choices) of(options ...string) string { return options[c.pick(len(options))] }

// member is one key and value of an object; val is JSON or meant to be.
type member struct{ key, val string }

// object writes members as an object after doing to one of them what only broken
// or foreign writers do.
func (c *choices) object(members ...member) string {
	if len(members) == 0 {
		return "{}"
	}
	i := c.pick(len(members))
	m := &members[i]
	switch c.pick(24) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
	case 13:
		members = append(members[:i:i], members[i+1:]...)
	case 14:
		m.val = "null"
	case 15:
		m.val = c.of("0", "-1.5e+300", "1e99999", "01", "-", "true", "tru", "[]", "{}", `""`, "", `"a`)
	case 16:
		members = append(members, *m)
	case 17:
		members = append(members, member{escapeFirst(m.key), m.val})
	case 18:
		m.key = escapeFirst(m.key)
	case 19:
		m.key = strings.ToUpper(m.key)
	case 20:
		members = append(members, member{c.of("x", "task_id", "recipients", "routing_info", ""), c.any(3)})
	case 21:
		j := c.pick(len(members))
		members[i].val, members[j].val = members[j].val, members[i].val
	case 22:
		j := c.pick(len(members))
		members[i], members[j] = members[j], members[i]
	case 23:
		m.val += c.of(",", " ", "}", "null", "\x00", "\ufeff")
	}
	var b bytes.Buffer
	for n, m := range members {
		b.WriteString([]string{"{", ","}[min(n, 1)])
		b.WriteString(`"` + m.key + `":` + c.of("", " ", "\n\t") + m.val)
	}
	return b.String() + c.of("}", "}", "}", " }", ",}", "")
}

// escapeFirst spells a key in another way that means the same.
func escapeFirst(key string) string {
	if key == "" || key[0] >= 0x80 || key[0] < ' ' {
		return key
	}
	return `\u00` + string("0123456789abcdef"[key[0]>>4]) + string("0123456789abcdef"[key[0]&15]) + key[1:]
}

// any returns some JSON value, mostly.
func (c *choices) any(depth int) string {
	switch n := c.pick(9); {
	case n == 1 && depth > 0:
		return c.object(member{"a", c.any(depth - 1)}, member{c.of("b", "é", "a.b", ""), c.any(depth - 1)})
	case n == 2 && depth > 0:
		return "[" + c.any(depth-1) + "," + c.any(depth-1) + "]"
	case n == 3:
		return c.of("0", "-0", "1.50", "1e5", "12345678901234567890", "1E-400", "-01", "1.", ".5", "+1", "0x1", "NaN")
	case n == 4:
		return c.of("true", "false", "null", "True")
	case n == 5:
		return strings.Repeat("[", 70) + strings.Repeat("]", 70)
	}
	return c.text()
}

func (c *choices) text() string {
	return c.of(`"calc"`, `""`, `"::task_complete::"`, `"a\"\\\/\b\f\n\r\tb"`, `"\u0000\u001f\u007f\u2028"`,
		`"é漢🐋"`, `"\ud83d\udc0b"`, `"\ud83d"`, `"\udc0b\ud83d"`, `"\ud83d\u0041"`, `"\uFFFD"`, "\"\t\"", "\"\xff\"", "\"\xed\xa0\xbd\"",
		`"\x"`, `"\u12"`, `"\u12g4"`, `"a@b"`, `"<script>&"`, `"`+strings.Repeat("é", 300)+`"`)
}

func (c *choices) uuid() string {
	return c.of(`"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11"`, `"8D2F6B0E-6F0E-4A39-9F5E-0D2C6A1C7B11"`,
		`"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11"`, `"00000000-0000-0000-0000-000000000000"`, `"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b1g"`,
		`"{8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11}"`, `"urn:uuid:8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11"`, `"8d2f6b0e6f0e4a399f5e0d2c6a1c7b11"`, c.text())
}

func (c *choices) task() string {
	return c.of(`"5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90"`, c.uuid(), `"test-task-id"`, `"a b"`, `"a\n"`, `"\u00a0"`, `"\u202e"`,
		`"`+strings.Repeat("漢", 256)+`"`, `"`+strings.Repeat("a", 257)+`"`, c.text())
}

func (c *choices) time() string {
	return c.of(`"2026-03-01T09:30:00.000000+00:00"`, `"2026-03-01T09:30:00Z"`, `"2024-02-29T23:59:59.1-23:59"`, `"2026-03-01"`,
		`"2026-02-29T00:00:00Z"`, `"2026-03-01t09:30:00z"`, `"2016-12-31T23:59:60Z"`, `"2026-03-01T09:30:00,1Z"`, `"2026-03-01T9:30:00Z"`, c.text())
}

func (c *choices) address() string {
	return c.object(member{"address_type", c.of(`"agent"`, `"user"`, `"admin"`, `"system"`, `"agent"`, `"Agent"`, `"swarm"`, `""`)},
		member{"address", c.of(`"calc"`, `"all"`, `"calc@depot"`, c.text())})
}

func (c *choices) list(item func() string) string {
	var items []string
	for range []int{1, 2, 0, 3}[c.pick(4)] {
		items = append(items, item())
	}
	return "[" + strings.Join(items, ",") + c.of("]", "]", "]", "]", "]", ",]", "}")
}

// payload writes the payload of a type, which c may confuse with another.
func (c *choices) payload(typ string) string {
	id, many := "request_id", false
	switch typ {
	case "broadcast", "broadcast_complete":
		id, many = "broadcast_id", true
	case "interrupt":
		id, many = "interrupt_id", true
	}
	if c.pick(16) == 15 {
		id, many = c.of("request_id", "broadcast_id", "interrupt_id"), c.pick(2) == 1
	}
	to := []member{{"recipient", c.address()}}
	if many {
		to = []member{{"recipients", c.list(c.address)}}
	}
	members := append([]member{{"task_id", c.task()}, {id, c.uuid()}, {"sender", c.address()},
		{"subject", c.text()}, {"body", c.text()}}, to...)
	if c.pick(2) == 1 {
		members = append(members, member{"sender_swarm", c.text()}, member{"routing_info", c.object(member{"a", c.any(4)})})
	}
	switch n := c.pick(3); {
	case n == 1 && many:
		members = append(members, member{"recipient_swarms", c.list(c.text)})
	case n == 1:
		members = append(members, member{"recipient_swarm", c.text()})
	}
	return c.object(members...)
}

func (c *choices) msgType() string {
	return c.of("request", "response", "broadcast", "interrupt", "broadcast_complete", "buffered", "Request")
}

func (c *choices) message() []byte {
	typ := c.msgType()
	members := []member{{"id", c.uuid()}, {"timestamp", c.time()}, {"msg_type", `"` + typ + `"`}, {"message", c.payload(typ)}}
	if c.pick(2) == 1 {
		members[2], members[3] = members[3], members[2]
	}
	return []byte(c.object(members...) + c.of("", "", "", "", "", "\n", " x", "{}"))
}

func (c *choices) interswarm() []byte {
	typ := c.msgType()
	members := []member{
		{"message_id", c.text()}, {"source_swarm", c.text()}, {"target_swarm", c.text()}, {"timestamp", c.time()},
		{"msg_type", `"` + typ + `"`}, {"task_owner", c.of(`"user:u@harbor"`, c.text())}, {"task_contributors", c.list(c.text)},
		{"payload", c.payload(typ)},
	}
	if c.pick(2) == 1 {
		members = append(members, member{"auth_token", c.text()}, member{"metadata", c.object(member{"a", c.any(4)})})
	}
	if c.pick(2) == 1 {
		members[4], members[7] = members[7], members[4]
	}
	return []byte(c.object(members...) + c.of("", "", "", "", "", "\n", " x", "{}"))
}
