package flow

import "fmt"

// cutText divides the text of a turn into the chunks of which it was made. A log of an
// older host has no cuts: its text is one chunk.
func cutText(text string, cuts []int) (chunks []string, err error) {
	if len(cuts) == 0 {
		if text == "" {
			return nil, nil
		}
		return []string{text}, nil
	}
	for _, n := range cuts {
		if n < 0 || n > len(text) {
			return nil, fmt.Errorf("the log's cuts %v do not fit its text of %d bytes", cuts, len(text))
		}
		chunks = append(chunks, text[:n])
		text = text[n:]
	}
	if text != "" {
		return nil, fmt.Errorf("the log's cuts leave %d bytes of text", len(text))
	}
	return chunks, nil
}
