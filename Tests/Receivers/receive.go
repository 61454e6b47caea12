// Answers what Go's mime/multipart makes of a posted form, in the words of receive.py: both lists in the order in which
// they came, or 400 with the reader's reason.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
)

type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type file struct {
	Name        string `json:"name"`
	Filename    string `json:"filename"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
}

type form struct {
	Fields []field `json:"fields"`
	Files  []file  `json:"files"`
}

func read(request *http.Request) (form, error) {
	received := form{Fields: []field{}, Files: []file{}}
	reader, err := request.MultipartReader()
	if err != nil {
		return received, err
	}
	for {
		part, err := reader.NextPart()
		if err == io.EOF {
			return received, nil
		}
		if err != nil {
			return received, err
		}
		if part.FileName() == "" {
			value, err := io.ReadAll(part)
			if err != nil {
				return received, err
			}
			received.Fields = append(received.Fields, field{part.FormName(), string(value)})
			continue
		}
		digest := sha256.New()
		size, err := io.Copy(digest, part)
		if err != nil {
			return received, err
		}
		received.Files = append(received.Files, file{
			part.FormName(), part.FileName(), part.Header.Get("Content-Type"), size,
			hex.EncodeToString(digest.Sum(nil)),
		})
	}
}

func receive(writer http.ResponseWriter, request *http.Request) {
	received, err := read(request)
	writer.Header().Set("Content-Type", "application/json")
	if err != nil {
		writer.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(writer).Encode(map[string]string{"error": err.Error()})
		return
	}
	json.NewEncoder(writer).Encode(received)
}

func main() {
	http.HandleFunc("/", receive)
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		println(err.Error())
		os.Exit(1)
	}
}
