"""Small configurations of transformers and diffusers, by family. Random weights; nothing is downloaded."""

from __future__ import annotations

from typing import Any

CORE = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 256,
}
TEXT = {**CORE, "vocab_size": 1000}
GROUPED = {**TEXT, "num_key_value_heads": 2}
IMAGE = {**CORE, "image_size": 64, "patch_size": 8}
SEQ2SEQ = {
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "vocab_size": 1000,
}
WAVES = {
    **CORE,
    "conv_dim": [64, 64],
    "conv_kernel": [10, 3],
    "conv_stride": [5, 4],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": 32,
}

TRANSFORMERS: dict[str, dict[str, dict[str, Any]]] = {
    "decoder-only": {
        "GPT2LMHeadModel": {
            "model_type": "gpt2",
            "n_layer": 2,
            "n_embd": 128,
            "n_head": 4,
            "vocab_size": 1000,
        },
        "LlamaForCausalLM": {"model_type": "llama", **GROUPED},
        "MistralForCausalLM": {"model_type": "mistral", **GROUPED},
        "Qwen2ForCausalLM": {"model_type": "qwen2", **GROUPED},
        "Qwen3ForCausalLM": {"model_type": "qwen3", **GROUPED, "head_dim": 32},
        "Gemma2ForCausalLM": {"model_type": "gemma2", **GROUPED, "head_dim": 32},
        "Phi3ForCausalLM": {"model_type": "phi3", **GROUPED, "pad_token_id": 0},
        "FalconForCausalLM": {"model_type": "falcon", **TEXT},
        "GPTNeoXForCausalLM": {"model_type": "gpt_neox", **TEXT},
        "OPTForCausalLM": {"model_type": "opt", **TEXT, "ffn_dim": 256, "word_embed_proj_dim": 128},
    },
    "mixture of experts": {
        "MixtralForCausalLM": {"model_type": "mixtral", **GROUPED, "num_local_experts": 4},
        "Qwen2MoeForCausalLM": {
            "model_type": "qwen2_moe",
            **GROUPED,
            "num_experts": 4,
            "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 128,
        },
        "Qwen3MoeForCausalLM": {
            "model_type": "qwen3_moe",
            **GROUPED,
            "head_dim": 32,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
        },
        "GptOssForCausalLM": {
            "model_type": "gpt_oss",
            **GROUPED,
            "head_dim": 32,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "pad_token_id": 0,
        },
    },
    "encoder": {
        "BertForMaskedLM": {"model_type": "bert", **TEXT},
        "RobertaForSequenceClassification": {"model_type": "roberta", **TEXT},
        "DistilBertModel": {
            "model_type": "distilbert",
            "dim": 128,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 256,
            "vocab_size": 1000,
        },
        "AlbertModel": {"model_type": "albert", **TEXT, "embedding_size": 64},
        "DebertaV2Model": {"model_type": "deberta-v2", **TEXT},
        "ModernBertForMaskedLM": {"model_type": "modernbert", **TEXT, "pad_token_id": 0},
    },
    "encoder-decoder": {
        "T5ForConditionalGeneration": {
            "model_type": "t5",
            "d_model": 128,
            "d_kv": 32,
            "d_ff": 256,
            "num_layers": 2,
            "num_heads": 4,
            "vocab_size": 1000,
        },
        "BartForConditionalGeneration": {"model_type": "bart", **SEQ2SEQ},
    },
    "vision": {
        "ViTForImageClassification": {"model_type": "vit", **IMAGE},
        "SwinForImageClassification": {
            "model_type": "swin",
            "image_size": 64,
            "patch_size": 4,
            "embed_dim": 32,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
        "ConvNextForImageClassification": {
            "model_type": "convnext",
            "image_size": 64,
            "depths": [1, 1],
            "hidden_sizes": [32, 64],
            "num_stages": 2,
        },
        "ResNetForImageClassification": {
            "model_type": "resnet",
            "embedding_size": 16,
            "hidden_sizes": [32, 64],
            "depths": [1, 1],
        },
        "Dinov2Model": {"model_type": "dinov2", **IMAGE},
        "SegformerForSemanticSegmentation": {
            "model_type": "segformer",
            "image_size": 64,
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [4, 2],
            "hidden_sizes": [16, 32],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "num_attention_heads": [1, 2],
            "mlp_ratios": [2, 2],
            "decoder_hidden_size": 32,
        },
        "VideoMAEModel": {"model_type": "videomae", **IMAGE, "num_frames": 4},
    },
    "audio": {
        "WhisperForConditionalGeneration": {
            "model_type": "whisper",
            **SEQ2SEQ,
            "max_source_positions": 100,
            "max_target_positions": 64,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        "Wav2Vec2ForCTC": {"model_type": "wav2vec2", **WAVES},
        "HubertModel": {"model_type": "hubert", **WAVES},
        "ASTForAudioClassification": {
            "model_type": "audio-spectrogram-transformer",
            **CORE,
            "num_mel_bins": 64,
            "max_length": 128,
        },
    },
    "state space": {
        "MambaForCausalLM": {
            "model_type": "mamba",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "vocab_size": 1000,
        },
        "Mamba2ForCausalLM": {
            "model_type": "mamba2",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "vocab_size": 1000,
            "num_heads": 8,
            "head_dim": 16,
            "state_size": 16,
            "n_groups": 1,
        },
    },
    "detection": {
        "DetrForObjectDetection": {
            "model_type": "detr",
            **{key: value for key, value in SEQ2SEQ.items() if key != "vocab_size"},
            "use_timm_backbone": False,
            "use_pretrained_backbone": False,
            "backbone": None,
            "backbone_config": {
                "model_type": "resnet",
                "embedding_size": 16,
                "hidden_sizes": [32, 64],
                "depths": [1, 1],
                "out_features": ["stage2"],
            },
            "num_queries": 20,
        },
        "YolosForObjectDetection": {
            "model_type": "yolos",
            **{**IMAGE, "image_size": [64, 64]},
            "num_detection_tokens": 20,
        },
    },
    "multimodal": {
        "CLIPModel": {
            "model_type": "clip",
            "text_config": {**TEXT, "eos_token_id": 2},
            "vision_config": IMAGE,
            "projection_dim": 64,
        },
        "SiglipModel": {"model_type": "siglip", "text_config": TEXT, "vision_config": IMAGE},
        "BlipForConditionalGeneration": {
            "model_type": "blip",
            "text_config": {**TEXT, "encoder_hidden_size": 128},
            "vision_config": IMAGE,
        },
        "LlavaForConditionalGeneration": {
            "model_type": "llava",
            "text_config": {"model_type": "llama", **TEXT},
            "vision_config": {"model_type": "clip_vision_model", **IMAGE},
            "image_token_id": 999,
        },
    },
}
"""Configuration by class of transformers, by family."""

BLOCKS = "block_out_channels=(32, 64), norm_num_groups=8, layers_per_block=1"
DIFFUSERS: dict[str, tuple[str, str]] = {
    "UNet2DModel": (
        f'sample_size=16, down_block_types=("DownBlock2D", "AttnDownBlock2D"), '
        f'up_block_types=("AttnUpBlock2D", "UpBlock2D"), {BLOCKS}, attention_head_dim=8',
        '{"sample": torch.randn(1, 3, 16, 16), "timestep": torch.tensor([10])}',
    ),
    "UNet2DConditionModel": (
        f'sample_size=16, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), '
        f'up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), {BLOCKS}, cross_attention_dim=32, '
        "attention_head_dim=8",
        '{"sample": torch.randn(1, 4, 16, 16), "timestep": torch.tensor([10]), '
        '"encoder_hidden_states": torch.randn(1, 16, 32)}',
    ),
    "AutoencoderKL": (
        f'down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, {BLOCKS}',
        '{"sample": torch.randn(1, 3, 32, 32)}',
    ),
    "DiTTransformer2DModel": (
        "num_attention_heads=4, attention_head_dim=16, in_channels=4, num_layers=2, sample_size=16, "
        "norm_num_groups=8, num_embeds_ada_norm=10",
        '{"hidden_states": torch.randn(1, 4, 16, 16), "timestep": torch.tensor([10]), '
        '"class_labels": torch.tensor([3])}',
    ),
    "SD3Transformer2DModel": (
        "sample_size=16, in_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=4, "
        "joint_attention_dim=32, caption_projection_dim=64, pooled_projection_dim=32, out_channels=4, "
        "pos_embed_max_size=16",
        '{"hidden_states": torch.randn(1, 4, 16, 16), "encoder_hidden_states": torch.randn(1, 8, 32), '
        '"pooled_projections": torch.randn(1, 32), "timestep": torch.tensor([10])}',
    ),
}
"""Constructor arguments and inputs, as source, by class of diffusers."""
