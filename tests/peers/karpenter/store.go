package main

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

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
	// What the reference does not call here ends this program: it would be a mistake of ours.
	client.Client
	mu      sync.RWMutex
	shelves map[reflect.Type]*shelf
	// generated counts the names that were made up.
	generated int
}

// shelf holds the objects of one kind.
type shelf struct {
	byName      map[client.ObjectKey]client.Object
	sorted      []client.Object
	byNamespace map[string][]client.Object
	byField     map[string]map[string][]client.Object
	// isStale: something was written since the last three were made.
	isStale bool
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

// put adds an object, over one of the same kind and name. It belongs to the store from then on, which does not change it.
func (s *store) put(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := reflect.TypeOf(object).Elem()
	if s.shelves[kind] == nil {
		s.shelves[kind] = &shelf{byName: map[client.ObjectKey]client.Object{}}
	}
	s.shelves[kind].byName[client.ObjectKeyFromObject(object)] = object
	s.shelves[kind].isStale = true
}

func (s *store) remove(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shelf := s.shelves[reflect.TypeOf(object).Elem()]; shelf != nil {
		delete(shelf.byName, client.ObjectKeyFromObject(object))
		shelf.isStale = true
	}
}

// index prepares for reading, so that the next reader need not.
func (s *store) index() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, shelf := range s.shelves {
		shelf.index(kind)
	}
}

func (s *shelf) index(kind reflect.Type) {
	if !s.isStale {
		return
	}
	s.sorted = make([]client.Object, 0, len(s.byName))
	for _, object := range s.byName {
		s.sorted = append(s.sorted, object)
	}
	slices.SortFunc(s.sorted, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	s.byNamespace = groups(s.sorted, client.Object.GetNamespace)
	s.byField = map[string]map[string][]client.Object{}
	for field, value := range indexes[kind] {
		s.byField[field] = groups(s.sorted, value)
	}
	s.isStale = false
}

// shelf gives the objects of a kind, ready to be read; none if there are none.
func (s *store) shelf(kind reflect.Type) *shelf {
	s.mu.RLock()
	found := s.shelves[kind]
	ready := found == nil || !found.isStale
	s.mu.RUnlock()
	if !ready {
		s.mu.Lock()
		found.index(kind)
		s.mu.Unlock()
	}
	return found
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
	if shelf := s.shelf(reflect.TypeFor[T]()); shelf != nil {
		for _, object := range shelf.sorted {
			objects = append(objects, object.(P))
		}
	}
	return objects
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.RLock()
	var object client.Object
	if shelf := s.shelves[reflect.TypeOf(into).Elem()]; shelf != nil {
		object = shelf.byName[key]
	}
	s.mu.RUnlock()
	if object != nil {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
		return nil
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
	shelf := s.shelf(kind)
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

// Create puts a new object, with a name of its own if it has none.
func (s *store) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if object.GetName() == "" {
		s.mu.Lock()
		s.generated++
		object.SetName(fmt.Sprintf("%s%06d", object.GetGenerateName(), s.generated))
		s.mu.Unlock()
	}
	s.put(object.DeepCopyObject().(client.Object))
	return nil
}

// Patch takes the object as it was changed. Only the reference writes, one thing after the other, so nothing is lost.
func (s *store) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	s.put(object.DeepCopyObject().(client.Object))
	return nil
}

func (s *store) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	s.remove(object)
	return nil
}

func (s *store) Status() client.SubResourceWriter { return statusOf{store: s} }

// statusOf writes the status of objects, and with it the rest, which its caller has read before.
type statusOf struct {
	client.SubResourceWriter
	store *store
}

func (s statusOf) Patch(ctx context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.store.Patch(ctx, object, nil)
}

// labelSet is a map of labels as selectors want it.
type labelSet map[string]string

func (l labelSet) Has(key string) bool   { _, found := l[key]; return found }
func (l labelSet) Get(key string) string { return l[key] }
func (l labelSet) Lookup(key string) (string, bool) {
	value, found := l[key]
	return value, found
}
