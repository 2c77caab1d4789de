package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
)

// readSnapshot reads one list of objects, or objects one after the other.
func readSnapshot(path string, into *store) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder := json.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	for {
		var object json.RawMessage
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := putJSON(object, into); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// readDefinitions reads every YAML file of a folder.
func readDefinitions(folder string, into *store) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		documents := k8syaml.NewYAMLReader(bufio.NewReader(file))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			object, err := yaml.YAMLToJSON(document)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if err := putJSON(object, into); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	})
}

// putJSON puts an object, or each object of a list. Kinds that the scheduler does not know are left out.
func putJSON(text []byte, into *store) error {
	var kind struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	if kind.Kind == "List" {
		for _, item := range kind.Items {
			if err := putJSON(item, into); err != nil {
				return err
			}
		}
		return nil
	}
	version := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	if !scheme.Scheme.Recognizes(version) {
		return nil
	}
	empty, err := scheme.Scheme.New(version)
	if err != nil {
		return err
	}
	object, isObject := empty.(client.Object)
	if !isObject {
		return nil
	}
	if err := json.Unmarshal(text, object); err != nil {
		return fmt.Errorf("%s: %w", kind.Kind, err)
	}
	if pool, is := object.(*v1.NodePool); is {
		setDefaults(pool)
	}
	into.put(object)
	return nil
}

// setDefaults does what an API server does with the defaults of the reference's CRD, as far as disruption looks at them.
func setDefaults(pool *v1.NodePool) {
	disruption := &pool.Spec.Disruption
	if disruption.ConsolidationPolicy == "" {
		disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
	}
	if disruption.Budgets == nil {
		disruption.Budgets = []v1.Budget{{Nodes: "10%"}}
	}
}
