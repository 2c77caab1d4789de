package main

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// store answers reads as the reference's informer caches do: from memory, by name, namespace and the same indexes, with
// copies. So what is measured is the reference, and not a client made for tests.
type store struct {
	// Nothing is written: a call that gets here is a mistake of this program, and ends it.
	client.Client
	shelves map[reflect.Type]*shelf
}

// shelf holds the objects of one kind.
type shelf struct {
	byName      map[client.ObjectKey]client.Object
	sorted      []client.Object
	byNamespace map[string][]client.Object
	byField     map[string]map[string][]client.Object
}

// indexes are those of pkg/operator/operator.go, as far as a snapshot has the kinds.
var indexes = map[reflect.Type]map[string]func(client.Object) string{
	reflect.TypeFor[corev1.Pod](): {
		"spec.nodeName": func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName },
	},
	reflect.TypeFor[corev1.Node](): {
		"spec.providerID": func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID },
	},
	reflect.TypeFor[v1.NodeClaim](): {
		"status.providerID": func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID },
	},
	reflect.TypeFor[storagev1.VolumeAttachment](): {
		"spec.nodeName": func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName },
	},
}

func newStore() *store {
	return &store{shelves: map[reflect.Type]*shelf{}}
}

// put adds an object, over one of the same kind and name.
func (s *store) put(object client.Object) {
	kind := reflect.TypeOf(object).Elem()
	if s.shelves[kind] == nil {
		s.shelves[kind] = &shelf{byName: map[client.ObjectKey]client.Object{}}
	}
	s.shelves[kind].byName[client.ObjectKeyFromObject(object)] = object
}

// index prepares for reading; nothing may be put afterwards.
func (s *store) index() {
	for kind, shelf := range s.shelves {
		for _, object := range shelf.byName {
			shelf.sorted = append(shelf.sorted, object)
		}
		slices.SortFunc(shelf.sorted, func(a, b client.Object) int {
			return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
		})
		shelf.byNamespace = groups(shelf.sorted, client.Object.GetNamespace)
		shelf.byField = map[string]map[string][]client.Object{}
		for field, value := range indexes[kind] {
			shelf.byField[field] = groups(shelf.sorted, value)
		}
	}
}

func groups(objects []client.Object, key func(client.Object) string) map[string][]client.Object {
	grouped := map[string][]client.Object{}
	for _, object := range objects {
		grouped[key(object)] = append(grouped[key(object)], object)
	}
	return grouped
}

// all gives the objects of a kind, sorted by namespace and name. They are not copies.
func all[T any, P interface {
	*T
	client.Object
}](s *store) []P {
	var objects []P
	if shelf := s.shelves[reflect.TypeFor[T]()]; shelf != nil {
		for _, object := range shelf.sorted {
			objects = append(objects, object.(P))
		}
	}
	return objects
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if shelf := s.shelves[reflect.TypeOf(into).Elem()]; shelf != nil {
		if object, found := shelf.byName[key]; found {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
			return nil
		}
	}
	kind, err := apiutil.GVKForObject(into, scheme.Scheme)
	if err != nil {
		return err
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
}

func (s *store) List(_ context.Context, list client.ObjectList, how ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(how)
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	candidates, err := s.candidates(items.Type().Elem(), options)
	if err != nil {
		return err
	}
	copies := options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy
	found := reflect.MakeSlice(items.Type(), 0, 0)
	for _, object := range candidates {
		if options.Namespace != "" && object.GetNamespace() != options.Namespace {
			continue
		}
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labelSet(object.GetLabels())) {
			continue
		}
		if copies {
			object = object.DeepCopyObject().(client.Object)
		}
		found = reflect.Append(found, reflect.ValueOf(object).Elem())
	}
	items.Set(found)
	return nil
}

// candidates are the objects of the smallest index that holds all that is asked for.
func (s *store) candidates(kind reflect.Type, options client.ListOptions) ([]client.Object, error) {
	shelf := s.shelves[kind]
	if shelf == nil {
		return nil, nil
	}
	if options.FieldSelector != nil && !options.FieldSelector.Empty() {
		wanted := options.FieldSelector.Requirements()
		index, found := shelf.byField[wanted[0].Field]
		if !found || len(wanted) != 1 {
			return nil, fmt.Errorf("no index for %s of %s", options.FieldSelector, kind.Name())
		}
		return index[wanted[0].Value], nil
	}
	if options.Namespace != "" {
		return shelf.byNamespace[options.Namespace], nil
	}
	return shelf.sorted, nil
}

// labelSet is a map of labels as selectors want it.
type labelSet map[string]string

func (l labelSet) Has(key string) bool   { _, found := l[key]; return found }
func (l labelSet) Get(key string) string { return l[key] }
func (l labelSet) Lookup(key string) (string, bool) {
	value, found := l[key]
	return value, found
}
