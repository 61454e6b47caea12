// Sends the form in FORM.json with Go's mime/multipart: go run send.go FORM.json URL
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"strings"
)

type form struct {
	Fields [][2]string
	Files  []struct{ Name, Filename, Type, Path string }
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var sent form
	check(json.Unmarshal(text, &sent))
	reader, writer := io.Pipe()
	body := multipart.NewWriter(writer)
	go func() {
		writer.CloseWithError(write(sent, body))
	}()
	response, err := http.Post(os.Args[2], body.FormDataContentType(), reader)
	check(err)
	text, err = io.ReadAll(response.Body)
	check(err)
	fmt.Println(string(text))
}

// Since Go 1.24 the package escapes line breaks itself, in this way.
var quoted = strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", "%0D", "\n", "%0A")

func write(sent form, body *multipart.Writer) error {
	for _, field := range sent.Fields {
		header := textproto.MIMEHeader{}
		header.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"`, quoted.Replace(field[0])))
		part, err := body.CreatePart(header)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(part, field[1]); err != nil {
			return err
		}
	}
	for _, file := range sent.Files {
		header := textproto.MIMEHeader{}
		header.Set("Content-Disposition", fmt.Sprintf(
			`form-data; name="%s"; filename="%s"`, quoted.Replace(file.Name), quoted.Replace(file.Filename)))
		header.Set("Content-Type", file.Type)
		part, err := body.CreatePart(header)
		if err != nil {
			return err
		}
		content, err := os.Open(file.Path)
		if err != nil {
			return err
		}
		if _, err := io.Copy(part, content); err != nil {
			return err
		}
		content.Close()
	}
	return body.Close()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
