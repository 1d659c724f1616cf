package cli

import (
	"context"
	"regexp"
	"strings"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/diagnosis"
)

// fullQuota is a line of metrics about a quota that only a running host counts, and of which nothing is
// left. It names the tenant with [telemetry] tenant_labels.
var fullQuota = regexp.MustCompile(`(?m)^skep_quota_left_ratio\{quota="(tasks|queue)"(?:,tenant="([^"\n]*)")?\} 0$`)

// checkLoadOfHost reports tenants that have as many open tasks or waiting messages as they may have.
func (d *hostDoctor) checkLoadOfHost(ctx context.Context, cfg *config.Config) {
	page, err := fetchPage(ctx, cfg.Server.AdminListen, "/metrics")
	if err != nil {
		return // the host stops, or its operators' listener is another's
	}
	for _, m := range fullQuota.FindAllStringSubmatch(string(page), -1) {
		d.addFullQuota(m[1], boundTenants(cfg, m[1], m[2]))
	}
}

// boundTenants are the tenants of the file with a quota: the one that a label names, or all that may be meant.
func boundTenants(cfg *config.Config, quota, label string) (names []string) {
	limits := definition.Tenants(cfg)
	for _, t := range cfg.Tenants {
		limit := limits[t.Name].Quota.Tasks
		if quota == "queue" {
			limit = limits[t.Name].Quota.Queue
		}
		if t.Name == label {
			return []string{label}
		}
		if limit > 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

func (d *hostDoctor) addFullQuota(quota string, tenants []string) {
	table, who := "[tenants.NAME]", "a tenant has"
	switch {
	case len(tenants) == 1:
		table, who = "[tenants."+tenants[0]+"]", "the tenant "+tenants[0]+" has"
	case len(tenants) > 1:
		who = "one of the tenants " + strings.Join(tenants, ", ") + " has"
	}
	what, ends := "as many tasks as it may have at once", "wait until some of them end, or cancel them: skep task list shows them"
	if quota == "queue" {
		what, ends = "as many messages in queues as it may have", "wait until its agents have worked on some of them"
	}
	d.add(diagnosis.TenantQuota, diagnosis.Warning, table+" "+quota, who+" "+what+", and its posts are refused; skep tenant list shows how many",
		"raise "+table+" "+quota+" in the file and run skep reload, or "+ends)
}
