package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

const catalogVersion = 1

// catalogFile is the published form, schemas/catalog.json.
type catalogFile struct {
	Version       int            `json:"version"`
	InstanceTypes []instanceType `json:"instanceTypes"`
}

type instanceType struct {
	Name         string              `json:"name"`
	Requirements map[string][]string `json:"requirements"`
	Capacity     corev1.ResourceList `json:"capacity"`
	Overhead     corev1.ResourceList `json:"overhead"`
	Offerings    []offering          `json:"offerings"`
}

type offering struct {
	Zone         string  `json:"zone"`
	ZoneID       string  `json:"zoneId"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
	Available    *bool   `json:"available"`
}

func readCatalog(path string) ([]*cloudprovider.InstanceType, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file catalogFile
	if err := json.Unmarshal(bytes, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if file.Version != catalogVersion {
		return nil, fmt.Errorf("%s: version %d, and this program reads %d", path, file.Version, catalogVersion)
	}
	var types []*cloudprovider.InstanceType
	for _, it := range file.InstanceTypes {
		types = append(types, it.forScheduling())
	}
	return types, nil
}

// forScheduling gives the type as the AWS provider would: labels that its nodes do not have are said not to exist.
func (it instanceType) forScheduling() *cloudprovider.InstanceType {
	requirements := scheduling.NewRequirements()
	for key, values := range it.Requirements {
		requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...))
	}
	for key := range awsLabels {
		if _, defined := it.Requirements[key]; !defined {
			requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	var offerings cloudprovider.Offerings
	for _, each := range it.Offerings {
		offerings = append(offerings, each.forScheduling())
	}
	return &cloudprovider.InstanceType{
		Name:         it.Name,
		Requirements: requirements,
		Offerings:    offerings,
		Capacity:     it.Capacity,
		// The sum is all that scheduling looks at.
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: it.Overhead},
	}
}

func (o offering) forScheduling() *cloudprovider.Offering {
	labels := map[string]string{corev1.LabelTopologyZone: o.Zone, v1.CapacityTypeLabelKey: o.CapacityType}
	if o.ZoneID != "" {
		labels[zoneIDLabel] = o.ZoneID
	}
	return &cloudprovider.Offering{
		Requirements: scheduling.NewLabelRequirements(labels),
		Price:        o.Price,
		Available:    o.Available == nil || *o.Available,
	}
}
