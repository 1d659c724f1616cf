package config

import (
	"errors"
	"strings"
	"testing"
)

// An address to which no request can be made is refused, under every key that holds one,
// with the line and the reason.
func TestAddressesThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	tables := map[string]string{
		"peers.depot.base_url":            "[peers.depot]\nallow_private = true\nbase_url = ",
		"gateways.a2a.partners.desk.url":  "[gateways.a2a.partners.desk]\nallow_private = true\nurl = ",
		"gateways.a2a.partners.desk.card": "[gateways.a2a.partners.desk]\nallow_private = true\nurl = \"https://desk.example\"\ncard = ",
		"mcp.notes.url":                   "[mcp.notes]\nallow_private = true\nurl = ",
		"models.m.base_url":               "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nallow_private = true\nbase_url = ",
		"server.public_url":               "[server]\npublic_url = ",
		"auth.jwt.keys_url":               "[auth.jwt]\nissuer = \"i\"\naudience = \"a\"\nkeys_url = ",
		"auth.jwt.issuer":                 "[auth.jwt]\naudience = \"a\"\nissuer = ",
		"auth.endpoints.token_info":       "[auth.endpoints]\nlogin = \"https://login.example\"\ntoken_info = ",
		"gateways.acp.partners.desk.url":  "[gateways.acp.partners.desk]\nallow_private = true\nurl = ",
	}
	addresses := map[string]string{
		"https://2130706433":        `"2130706433" is not an IPv4 address of four decimal numbers`,
		"https://0x7f000001/x":      "is not an IPv4 address",
		"https://depot.example:0":   "the URL's port must be a number from 1 to 65535",
		"https://[fe80::1%25eth0]/": "is not an IPv6 address without zone",
	}
	for key, table := range tables {
		for address, want := range addresses {
			wantOneFault(t, key, table, address, want)
		}
	}
	wantOneFault(t, "peers.depot.base_url", tables["peers.depot.base_url"], "https://depot.example/a/../b", "its path must be written /b")
}

// wantOneFault wants a fault in the last line of a file.
func wantOneFault(t *testing.T, key, table, address, want string) {
	t.Helper()
	file := readValid(t, "minimal.toml") + "\n" + table + `"` + address + `"` + "\n"
	_, err := Parse("swarm.toml", []byte(file), "testdata/valid", testOptions)
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 1 || !strings.HasPrefix(faults[0].Message, key+": ") || !strings.Contains(faults[0].Message, want) ||
		faults[0].Line != strings.Count(file, "\n") {
		t.Errorf("%s = %q: %v, want %q", key, address, err, want)
	}
}
