package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skep/spec/openapi"
)

// interfaceTests hold what the table of endpoints says.
var interfaceTests = []string{
	"host/internal/api/rest.TestOpenAPIRoles_R059_R060_R061", "host/internal/api/rest.TestOpenAPIRoutes_R003_R057",
	"host/internal/api/rest.TestOpenAPIStatuses_R003_R057",
}

func readInterface(root string) (*openapi.Document, error) {
	raw, err := os.ReadFile(filepath.Join(root, "spec", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	return openapi.Parse(raw)
}

// renderInterface writes which role gets what from which endpoint.
func renderInterface(doc *openapi.Document, result string) string {
	var b strings.Builder
	roles := []string{"user", "admin", "operator", "agent"}
	fmt.Fprintf(&b, `
## Endpoints

Every endpoint of spec/openapi.yaml, who may call it, and every status it answers
with. Each cell and each status is driven against a handler by
%s.
Result of these tests: %s.

| endpoint | no key | %s | statuses |
|---|---|---|---|---|---|---|
`, strings.Join(interfaceTests, ",\n"), result, strings.Join(roles, " | "))
	for _, op := range doc.Operations() {
		fmt.Fprintf(&b, "| %s | %s |", op, cell(op.Open()))
		for _, role := range roles {
			fmt.Fprintf(&b, " %s |", cell(op.Open() || slices.Contains(op.Roles(), role)))
		}
		fmt.Fprintf(&b, " %s |\n", strings.Join(op.Statuses(), " "))
	}
	return b.String()
}

func cell(may bool) string {
	if may {
		return "yes"
	}
	return "401"
}
