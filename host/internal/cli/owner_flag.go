package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"skep/spec/mail"
)

// ownerFlag is the flag --owner: ROLE:ID, or a form that names the tenant as well, as lists
// print it (TENANT/ROLE:ID) and as a task names its owner (ROLE:TENANT/ID@SWARM).
type ownerFlag struct{ instance, tenant *string }

// ownerTenantFlag is the flag --tenant beside --owner.
type ownerTenantFlag struct{ tenant *string }

var _, _ pflag.Value = ownerFlag{}, ownerTenantFlag{}

func (f ownerFlag) String() string {
	if f.instance == nil {
		return ""
	}
	return *f.instance
}

func (ownerFlag) Type() string { return "string" }

func (f ownerFlag) Set(text string) error {
	instance, tenant := splitOwner(text)
	role, id, _ := strings.Cut(instance, ":")
	if !mail.Role(role).Valid() || id == "" {
		return fmt.Errorf("--owner takes ROLE:ID, as user:ivan, or TENANT/ROLE:ID; ROLE is user, admin or swarm")
	}
	*f.instance = instance
	if tenant == "" {
		return nil
	}
	return ownerTenantFlag{f.tenant}.Set(tenant)
}

// splitOwner returns the instance that the text names, and the tenant where it names one. An ID
// may hold '/' and '@': user:TENANT/ID without a swarm is an instance.
func splitOwner(text string) (instance, tenant string) {
	if tenant, instance, found := strings.Cut(text, "/"); found && !strings.Contains(tenant, ":") {
		return instance, tenant
	}
	owner, err := mail.ParseOwner(text)
	if err != nil || !strings.Contains(owner.ID, "/") {
		return text, ""
	}
	tenant, id, err := mail.SplitPrincipal(owner.ID)
	if err != nil {
		return text, ""
	}
	return string(owner.Role) + ":" + id, tenant
}

func (f ownerTenantFlag) String() string {
	if f.tenant == nil {
		return ""
	}
	return *f.tenant
}

func (ownerTenantFlag) Type() string { return "string" }

// Set refuses a second tenant: the one of --owner and the one of --tenant are the same.
func (f ownerTenantFlag) Set(text string) error {
	if *f.tenant != "" && *f.tenant != text {
		return fmt.Errorf("--owner and --tenant name two tenants, %s and %s: give one", inLine(*f.tenant), inLine(text))
	}
	*f.tenant = text
	return nil
}
