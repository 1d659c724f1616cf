package abi

// ParseTurnResult decodes what skep_turn has written, which is one JSON object.
// Names of members are exact; unknown ones pass. It checks no bounds.
func ParseTurnResult(raw []byte) (TurnResult, error) {
	var r TurnResult
	o, err := openObject(raw, "state", "notes")
	if err != nil {
		return r, err
	}
	r.State = o.members["state"]
	r.Notes = o.texts("notes")
	return r, *o.fault
}
