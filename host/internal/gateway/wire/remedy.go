package wire

// Remedy ends the refusal of what is above a limit of a gateway: the setting to raise, or that
// it cannot be more.
func Remedy(gateway, setting string, value, most int64) string {
	if value >= most {
		return setting + " of [gateways." + gateway + "] cannot be more"
	}
	return "raise " + setting + " of [gateways." + gateway + "]"
}
