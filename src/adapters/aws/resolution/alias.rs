//! The images that an alias means: `al2023@latest` is five parameters of the Systems Manager, one for each architecture and accelerator.
//! Source: reference, section 6.2, and Karpenter's `pkg/providers/amifamily`.

use super::cluster::KubernetesVersion;
use crate::api::ec2_node_class::AmiFamily;
use crate::api::keys;
use crate::api::node_pool::{NodeSelectorRequirement, Operator};
use crate::core::catalog::labels::{ACCELERATOR_COUNT, GPU_COUNT};

pub(super) const GPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
const ACCELERATOR_MANUFACTURER: &str = "karpenter.k8s.aws/instance-accelerator-manufacturer";

/// From this version of Kubernetes on there is no Amazon Linux 2.
const WITHOUT_AL2: KubernetesVersion = KubernetesVersion::new(1, 33);
/// From this one on there is Windows 2025.
const WITH_WINDOWS_2025: KubernetesVersion = KubernetesVersion::new(1, 35);

/// What an image is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    Standard,
    Nvidia,
    Neuron,
}

impl Variant {
    /// What an instance type must be like.
    fn requirements(self) -> Vec<NodeSelectorRequirement> {
        match self {
            Self::Standard => [ACCELERATOR_COUNT, GPU_COUNT].map(|key| requirement(key, None)).into(),
            Self::Nvidia => vec![requirement(GPU_MANUFACTURER, Some("nvidia"))],
            Self::Neuron => vec![requirement(ACCELERATOR_MANUFACTURER, Some("aws"))],
        }
    }
}

/// `In` that value, or `DoesNotExist`.
pub fn requirement(key: &str, value: Option<&str>) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: if value.is_some() { Operator::In } else { Operator::DoesNotExist },
        values: value.into_iter().map(str::to_owned).collect(),
        min_values: None,
    }
}

/// A parameter that holds the id of an image, and the instance types that the image is for.
#[derive(Clone, Debug, PartialEq)]
pub struct AliasParameter {
    pub name: String,
    /// `amd64 nvidia`, for people.
    pub what: String,
    /// Any of them; the architecture is the image's own.
    pub requirements: Vec<Vec<NodeSelectorRequirement>>,
}

/// An alias that stands for no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    #[error("the alias {0} is not of the form family@version")]
    Form(String),
    #[error(
        "the alias {0} is of no family that there is: al2, al2023, bottlerocket, windows2019, windows2022, windows2025"
    )]
    Family(String),
    #[error("there is no {alias} for Kubernetes {version}: {hint}")]
    Version { alias: String, version: KubernetesVersion, hint: &'static str },
}

/// An alias, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    pub family: AmiFamily,
    /// `latest`, or a version.
    pub version: String,
}

impl Alias {
    pub fn parse(text: &str) -> Result<Self, AliasError> {
        let (family, version) = text.split_once('@').ok_or_else(|| AliasError::Form(text.to_owned()))?;
        let family = AmiFamily::of_alias(family).ok_or_else(|| AliasError::Family(text.to_owned()))?;
        Ok(Self { family, version: version.to_owned() })
    }

    /// Whether what it means may change while it stays as it is.
    pub fn is_latest(&self) -> bool {
        self.version == "latest"
    }

    /// The parameters to look up in a cluster of that version.
    pub fn parameters(&self, kubernetes: KubernetesVersion) -> Result<Vec<AliasParameter>, AliasError> {
        let unsupported = |hint| {
            let alias = format!("{:?}@{}", self.family, self.version).to_lowercase();
            Err(AliasError::Version { alias, version: kubernetes, hint })
        };
        match self.family {
            AmiFamily::AL2 if kubernetes >= WITHOUT_AL2 => unsupported("take al2023"),
            AmiFamily::Windows2025 if kubernetes < WITH_WINDOWS_2025 => unsupported("it begins with Kubernetes 1.35"),
            AmiFamily::AL2 => Ok(self.al2(kubernetes)),
            AmiFamily::AL2023 => Ok(self.al2023(kubernetes)),
            AmiFamily::Bottlerocket => Ok(self.bottlerocket(kubernetes)),
            AmiFamily::Windows2019 => Ok(windows("2019", "10.0.17763", kubernetes)),
            AmiFamily::Windows2022 => Ok(windows("2022", "10.0.20348", kubernetes)),
            AmiFamily::Windows2025 => Ok(windows("2025", "10.0.26100", kubernetes)),
            AmiFamily::Custom => Ok(Vec::new()),
        }
    }

    /// The image with accelerators serves NVIDIA and Neuron alike.
    fn al2(&self, kubernetes: KubernetesVersion) -> Vec<AliasParameter> {
        let of = |part: &str, what: &str, variants: &[Variant]| {
            let image = if self.is_latest() {
                "recommended".to_owned()
            } else {
                let infix = part.strip_prefix('-').map(|part| format!("{part}-")).unwrap_or_default();
                format!("amazon-eks-{infix}node-{kubernetes}-{}", self.version)
            };
            let name = format!("/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2{part}/{image}/image_id");
            parameter(name, what, variants)
        };
        vec![
            of("", "amd64", &[Variant::Standard]),
            of("-arm64", "arm64", &[Variant::Standard]),
            of("-gpu", "amd64 nvidia, neuron", &[Variant::Neuron, Variant::Nvidia]),
        ]
    }

    fn al2023(&self, kubernetes: KubernetesVersion) -> Vec<AliasParameter> {
        let of = |architecture: &str, word: &str, variant: Variant| {
            let image = if self.is_latest() {
                "recommended".to_owned()
            } else {
                format!("amazon-eks-node-al2023-{architecture}-{word}-{kubernetes}-{}", self.version)
            };
            let path = format!("amazon-linux-2023/{architecture}/{word}");
            let name = format!("/aws/service/eks/optimized-ami/{kubernetes}/{path}/{image}/image_id");
            parameter(name, &format!("{} {word}", kubernetes_architecture(architecture)), &[variant])
        };
        vec![
            of("x86_64", "standard", Variant::Standard),
            of("x86_64", "nvidia", Variant::Nvidia),
            of("x86_64", "neuron", Variant::Neuron),
            of("arm64", "standard", Variant::Standard),
            of("arm64", "nvidia", Variant::Nvidia),
        ]
    }

    /// The standard image for amd64 serves Neuron, too.
    fn bottlerocket(&self, kubernetes: KubernetesVersion) -> Vec<AliasParameter> {
        let version = self.version.strip_prefix('v').unwrap_or(&self.version);
        let of = |architecture: &str, flavour: &str, what: &str, variants: &[Variant]| {
            let path = format!("aws-k8s-{kubernetes}{flavour}/{architecture}/{version}");
            parameter(format!("/aws/service/bottlerocket/{path}/image_id"), what, variants)
        };
        vec![
            of("x86_64", "", "amd64 standard", &[Variant::Standard, Variant::Neuron]),
            of("x86_64", "-nvidia", "amd64 nvidia", &[Variant::Nvidia]),
            of("arm64", "", "arm64 standard", &[Variant::Standard]),
            of("arm64", "-nvidia", "arm64 nvidia", &[Variant::Nvidia]),
        ]
    }
}

fn parameter(name: String, what: &str, variants: &[Variant]) -> AliasParameter {
    let requirements = variants.iter().map(|variant| variant.requirements()).collect();
    AliasParameter { name, what: what.to_owned(), requirements }
}

fn windows(year: &str, build: &str, kubernetes: KubernetesVersion) -> Vec<AliasParameter> {
    let image = format!("Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}");
    vec![AliasParameter {
        name: format!("/aws/service/ami-windows-latest/{image}/image_id"),
        what: "amd64".to_owned(),
        requirements: vec![vec![
            requirement(keys::OPERATING_SYSTEM, Some("windows")),
            requirement(keys::WINDOWS_BUILD, Some(build)),
        ]],
    }]
}

/// The architecture as Kubernetes names it.
pub fn kubernetes_architecture(of_image: &str) -> &str {
    match of_image {
        "x86_64" => "amd64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(alias: &str, kubernetes: (u32, u32)) -> Vec<String> {
        let version = KubernetesVersion::new(kubernetes.0, kubernetes.1);
        let parameters = Alias::parse(alias).unwrap().parameters(version).unwrap();
        parameters.into_iter().map(|parameter| parameter.name).collect()
    }

    #[test]
    fn an_alias_is_a_list_of_parameters() {
        assert_eq!(
            names("al2023@latest", (1, 34)),
            [
                "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id",
                "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/recommended/image_id",
                "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/neuron/recommended/image_id",
                "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id",
                "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/recommended/image_id",
            ]
        );
        assert_eq!(
            names("al2023@v20260812", (1, 34))[3],
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.34-v20260812/image_id"
        );
        assert_eq!(
            names("al2@v20240807", (1, 30)),
            [
                "/aws/service/eks/optimized-ami/1.30/amazon-linux-2/amazon-eks-node-1.30-v20240807/image_id",
                "/aws/service/eks/optimized-ami/1.30/amazon-linux-2-arm64/amazon-eks-arm64-node-1.30-v20240807/image_id",
                "/aws/service/eks/optimized-ami/1.30/amazon-linux-2-gpu/amazon-eks-gpu-node-1.30-v20240807/image_id",
            ]
        );
        assert_eq!(
            names("bottlerocket@v1.46.0", (1, 34)),
            [
                "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.46.0/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/1.46.0/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.34/arm64/1.46.0/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.46.0/image_id",
            ]
        );
        assert_eq!(
            names("bottlerocket@latest", (1, 34))[0],
            "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/latest/image_id"
        );
        assert_eq!(
            names("windows2022@latest", (1, 34)),
            ["/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id"]
        );
    }

    #[test]
    fn what_there_is_no_image_for_is_said() {
        let error = |alias: &str, minor| {
            let parsed = Alias::parse(alias).and_then(|alias| alias.parameters(KubernetesVersion::new(1, minor)));
            parsed.unwrap_err().to_string()
        };
        assert_eq!(error("al2@latest", 33), "there is no al2@latest for Kubernetes 1.33: take al2023");
        assert!(error("windows2025@latest", 34).contains("1.35"));
        assert!(error("ubuntu@latest", 34).contains("no family"));
        assert!(error("al2023", 34).contains("family@version"));
        assert!(Alias::parse("al2@latest").unwrap().parameters(KubernetesVersion::new(1, 32)).is_ok());
    }
}
