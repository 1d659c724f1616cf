package fileaction

import "encoding/json"

const pathSchema = `"path":{"type":"string","minLength":1,"maxLength":1024,"description":"Relative, with / between names."}`

// Describe returns the description of an action and the JSON Schema of its parameters.
func Describe(does string) (description string, parameters json.RawMessage) {
	only := json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{` + pathSchema + `}}`)
	switch does {
	case "read_file":
		return `Reads a file. Text comes as a text, anything else as {"encoding":"base64","content":…}.`, only
	case "read_directory":
		return `Lists the names in a directory, one a line; those of directories end with /. The path "." is the directory that all paths begin at.`, only
	case "write_file":
		return "Writes a file in the place of the one that is there, and makes the directories above it.",
			json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{` + pathSchema +
				`,"content":{"type":"string"},"encoding":{"enum":["base64"],"description":"Left out, content is the text itself."}}}`)
	case "create_directory":
		return "Makes a directory and those above it.", only
	case "delete_file":
		return "Deletes a file, not a directory.", only
	}
	return "", nil
}
