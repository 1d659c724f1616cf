package config

// Console is the [console] table.
type Console struct {
	// Look is one of the constants below.
	Look string
}

// Who sees what is said in tasks of others.
const (
	LookNever  = "never"
	LookReason = "reason" // operators, and admins in their tenant, who write down why
	LookFree   = "free"   // the same without a reason
)

// Settings have a default that goes by the listeners and the tenants: see [decoder.console].
func (c *Console) Settings() []Setting {
	return []Setting{
		choice(&c.Look, "look", LookNever, []string{LookNever, LookReason, LookFree},
			"Whether operators, and admins in their tenant, see what is said in tasks of others: `reason` is one task for 30 minutes, with a written reason that the owner reads.").
			withDefaultText("never; free where only this machine calls and no tenant is configured").restarts(),
	}
}

func (d *decoder) console(file *table, s Server) Console {
	var c Console
	t := file.table("console")
	t.read(c.Settings())
	t.refuseUnknown()
	if !t.has("look") && s.alone() && !file.has("tenants") {
		c.Look = LookFree
	}
	return c
}
