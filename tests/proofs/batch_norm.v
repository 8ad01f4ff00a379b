(* batch_norm.v - BN: one channel of M values, its mean, its variance and its gradients. *)

Require Import base.

(* BN.5: yᵢ = γ x̂ᵢ + β *)
Definition bn (M : nat) (ε γ β : R) (x : nat -> R) (i : nat) : R :=
  γ * normalized M ε x i + β.

(* BN.8: the running mean after t batches, whose means are b 0, b 1, ...; w is the weight at each *)
Fixpoint running (w b : nat -> R) (m : R) (t : nat) : R :=
  match t with O => m | S k => (1 - w k) * running w b m k + w k * b k end.

(* BN.8: m ← (1 − w)·m + w·μ: after t batches (1 − w)ᵗ is left of the start, and w·(1 − w)ᵏ of the
   batch before the last k. *)
Theorem BN_8 w b m t : running (fun _ => w) b m t =
  (1 - w) ^ t * m + ∑ k < t, w * (1 - w) ^ (t - 1 - k) * b k.
Proof.
  induction t; [simpl; ring |]. cbn [running Sum]. rewrite IHt.
  replace (S t - 1 - t)%nat with O by lia.
  rewrite (Sum_ext_lt t (fun k => w * (1 - w) ^ (S t - 1 - k) * b k)
             (fun k => (1 - w) * (w * (1 - w) ^ (t - 1 - k) * b k))).
  - rewrite Sum_scal. simpl. ring.
  - intros k K. replace (S t - 1 - k)%nat with (S (t - 1 - k)) by lia. simpl. ring.
Qed.

(* BN.10: w = 1/t at the t-th batch: all batches count alike. *)
Theorem BN_10 b m t : (0 < t)%nat -> running (fun k => 1 / (k + 1)) b m t = mean t b.
Proof.
  unfold mean. induction t as [| t IH]; [lia |]. intros _. cbn [running Sum].
  rewrite S_INR. destruct t; [simpl; field |].
  rewrite IH by lia. pose proof (pos_INR (S t)). rewrite S_INR in *. pose proof (pos_INR t).
  field. split; lra.
Qed.

Section Batch_norm.
Variables (M : nat) (ε γ β : R) (x : nat -> R).
Hypothesis M_pos : (0 < M)%nat.
Hypothesis root : 0 < var M x + ε.

Notation "⟨ f ⟩" := (mean M f).
Notation μ := (mean M x).
Notation v := (var M x).
Notation r := (rstd M ε x).
Notation "x̂" := (normalized M ε x).

Let M_ne0 : INR M <> 0 := count_ne0 M M_pos.
Let r_sqr : r ^ 2 * (v + ε) = 1 := rstd_sqr M ε x root.

(* BN.1: μ = (1/M)·∑ᵢ xᵢ: the mean is the number from which the squared distances have
   the smallest sum. *)
Theorem BN_1 a : ∑ i < M, (x i - μ) ^ 2 <= ∑ i < M, (x i - a) ^ 2.
Proof.
  assert (∑ i < M, (x i - a) ^ 2 = 1 * ∑ i < M, (x i - μ) ^ 2
          + (2 * (μ - a)) * ∑ i < M, (x i - μ) + (μ - a) ^ 2 * ∑ i < M, 1) as ->
    by (apply Sum_lin3; termwise).
  rewrite Sum_dev, Sum_const by exact M_pos. pose proof (pow2_ge_0 (μ - a)).
  pose proof (count_pos M M_pos). nra.
Qed.

(* BN.2: v = (1/M)·∑ᵢ (xᵢ − μ)²: measured from any a, the mean square is larger by (μ − a)². *)
Theorem BN_2 a : (∑ i < M, (x i - a) ^ 2) / M = v + (μ - a) ^ 2.
Proof.
  assert (∑ i < M, (x i - a) ^ 2 = 1 * ∑ i < M, (x i - μ) ^ 2
          + (2 * (μ - a)) * ∑ i < M, (x i - μ) + (μ - a) ^ 2 * ∑ i < M, 1) as ->
    by (apply Sum_lin3; termwise).
  rewrite Sum_dev, Sum_const by exact M_pos. unfold var. field. exact M_ne0.
Qed.

(* BN.6: ∑ᵢ x̂ᵢ = 0 *)
Theorem BN_6 : ∑ i < M, x̂ i = 0.
Proof. apply Sum_normalized, M_pos. Qed.

(* BN.7: ⟨x̂²⟩ = v·r² = 1 − ε·r² *)
Theorem BN_7 : ⟨fun i => x̂ i ^ 2⟩ = v * r ^ 2 /\ v * r ^ 2 = 1 - ε * r ^ 2.
Proof. split; [apply normalized_sqr | lra]. Qed.

(* BN.9: u ← (1 − w)·u + w·v·M/(M − 1): this v·M/(M − 1) is the mean of ½ (xᵢ − xⱼ)² over all
   pairs of different values. The expectation of each is the variance of the population, if the
   values are independent. *)
Theorem BN_9 : (1 < M)%nat ->
  v * M / (M - 1) = (∑ i < M, ∑ j < M, 1 / 2 * (x i - x j) ^ 2) / (M * (M - 1)).
Proof.
  intros H. assert (1 < INR M) by (apply (lt_INR 1); exact H).
  assert (E : forall i, ∑ j < M, 1 / 2 * (x i - x j) ^ 2
              = 1 / 2 * ∑ j < M, (x j - μ) ^ 2 + M / 2 * (x i - μ) ^ 2).
  { intros i. transitivity (1 / 2 * ∑ j < M, (x j - μ) ^ 2
        + (μ - x i) * ∑ j < M, (x j - μ) + (1 / 2 * (x i - μ) ^ 2) * ∑ j < M, 1).
    - apply Sum_lin3; intros; field.
    - rewrite Sum_dev, Sum_const by exact M_pos. field. }
  rewrite (Sum_ext _ _ _ E), Sum_plus, Sum_const, Sum_scal. unfold var. field. split; lra.
Qed.

Section Gradients.
Variables (L : (nat -> R) -> R) (dy : nat -> R).
Hypothesis dL : gradient M L (bn M ε γ β x) dy.

(* BN.12: dβ = ∑ᵢ dyᵢ *)
Theorem BN_12 : is_derive (fun β => L (bn M ε γ β x)) β (∑ i < M, dy i).
Proof.
  eapply d_eq; [apply (dL _ _ (fun _ => 1)) |].
  - split; [reflexivity |]. intros; unfold bn. eapply d_eq; [rate | ring].
  - apply Sum_ext; termwise.
Qed.

(* BN.13: dγ = ∑ᵢ dyᵢ·x̂ᵢ *)
Theorem BN_13 : is_derive (fun γ => L (bn M ε γ β x)) γ (∑ i < M, dy i * x̂ i).
Proof.
  eapply d_eq; [apply (dL _ _ x̂) |].
  - split; [reflexivity |]. intros; unfold bn. eapply d_eq; [rate | ring].
  - apply Sum_ext; termwise.
Qed.

(* BN.14: gᵢ = ∂L/∂x̂ᵢ = γ·dyᵢ *)
Theorem BN_14 : gradient M (fun z => L (fun i => γ * z i + β)) x̂ (fun i => γ * dy i).
Proof.
  apply (gradient_affine M L (fun _ => γ) (fun _ => β) x̂ dy dL).
Qed.
End Gradients.

(* BN.15: ∂μ/∂xᵢ = 1/M *)
Theorem BN_15 i : (i < M)%nat -> partial (mean M) x i (1 / M).
Proof.
  intros H. eapply d_eq; [apply (along_mean M x (δ i)), path_nudge |].
  unfold mean. rewrite Sum_delta_one by exact H. reflexivity.
Qed.

(* BN.16: ∂v/∂xᵢ = (2/M)·(xᵢ − μ) − (2/M)·(1/M)·∑ⱼ (xⱼ − μ) = (2/M)·(xᵢ − μ) *)
Theorem BN_16 i : (i < M)%nat ->
  partial (var M) x i (2 / M * (x i - μ) - 2 / M * (1 / M) * ∑ j < M, (x j - μ)) /\
  2 / M * (x i - μ) - 2 / M * (1 / M) * ∑ j < M, (x j - μ) = 2 / M * (x i - μ).
Proof.
  intros H. split.
  - eapply d_eq; [apply (along_var M x (δ i)), path_nudge; exact M_pos |].
    rewrite (Sum_ext _ _ (δ i · (fun j => x j - μ))) by termwise.
    rewrite Sum_delta, Sum_dev by assumption. ring.
  - rewrite Sum_dev by exact M_pos. ring.
Qed.

(* BN.17: ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/M)·r²·x̂ᵢ *)
Theorem BN_17 i : (i < M)%nat ->
  partial (rstd M ε) x i (- (1 / 2) * r ^ 3 * (2 / M * (x i - μ))) /\
  - (1 / 2) * r ^ 3 * (2 / M * (x i - μ)) = - (1 / M) * r ^ 2 * x̂ i.
Proof.
  intros H. split.
  - apply (along_rstd_var M x (δ i)); [apply path_nudge | exact root |].
    destruct (BN_16 i H) as [D E]. eapply d_eq; [exact D | exact E].
  - unfold normalized. field. exact M_ne0.
Qed.

(* BN.18: ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − x̂ᵢ·x̂ⱼ/M) *)
Theorem BN_18 i j : (i < M)%nat ->
  partial (fun x => normalized M ε x j) x i (r * (δ i j - 1 / M - x̂ i * x̂ j / M)).
Proof.
  intros H. pose proof (along_normalized M x (δ i) _ 0 M_pos (path_nudge x i) ε root) as [_ D].
  eapply d_eq; [apply D |]. cbv beta. unfold mean.
  rewrite Sum_delta_one, (Sum_ext _ _ (δ i · x̂)), Sum_delta by (assumption || termwise).
  field. exact M_ne0.
Qed.

(* BN.19: dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = γ·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩), the gradient of any loss *)
Theorem BN_19 L dy : gradient M L (bn M ε γ β x) dy ->
  gradient M (fun x => L (bn M ε γ β x)) x
    (fun i => γ * r * (dy i - ⟨dy⟩ - x̂ i * ⟨dy · x̂⟩)).
Proof.
  intros dL p t d P. pose proof (BN_14 L dy dL) as G.
  eapply d_eq; [apply (gradient_normalized M ε _ x _ M_pos root G p t d P) |].
  apply Sum_ext; intros i; cbv beta.
  rewrite (mean_lin2 M γ 0 dy dy (fun i => γ * dy i)) by termwise.
  rewrite (mean_lin2 M γ 0 (dy · x̂) dy (fun i => γ * dy i * x̂ i)) by termwise. ring.
Qed.

Theorem BN_19_sum dy i : (i < M)%nat ->
  ∑ j < M, γ * dy j * (r * (δ i j - 1 / M - x̂ i * x̂ j / M)) =
  γ * r * (dy i - ⟨dy⟩ - x̂ i * ⟨dy · x̂⟩).
Proof.
  intros H. transitivity (γ * r * Sum M (δ i · dy) + (- γ * r / M) * Sum M dy
                          + (- γ * r * x̂ i / M) * Sum M (dy · x̂)).
  - apply Sum_lin3. intros; cbv beta; field. exact M_ne0.
  - rewrite Sum_delta by exact H. unfold mean. field. exact M_ne0.
Qed.

(* BN.20: dxᵢ = γ·r·dyᵢ (frozen), with m and u, which do not depend on x, for μ and v *)
Theorem BN_20 L dy m u : let s := 1 / sqrt (u + ε) in
  gradient M L (fun i => γ * ((x i - m) * s) + β) dy ->
  gradient M (fun x => L (fun i => γ * ((x i - m) * s) + β)) x (fun i => γ * s * dy i).
Proof.
  intros s. apply (chain M M L (fun x i => γ * ((x i - m) * s) + β) x (fun d i => γ * s * d i)).
  - intros p t d [E D]. split; [rewrite E; reflexivity |]. intros i.
    eapply d_eq; [rate | ring].
  - intros d. apply Sum_ext; termwise.
Qed.

Definition bn_dx (dy : nat -> R) (i : nat) : R :=
  γ * r * (dy i - ⟨dy⟩ - x̂ i * ⟨dy · x̂⟩).

(* BN.21: ∑ᵢ dxᵢ = 0 *)
Theorem BN_21 dy : ∑ i < M, bn_dx dy i = 0.
Proof.
  transitivity (γ * r * Sum M dy + (- γ * r * ⟨dy⟩) * ∑ i < M, 1
                + (- γ * r * ⟨dy · x̂⟩) * Sum M x̂).
  - apply Sum_lin3. unfold bn_dx. termwise.
  - rewrite Sum_normalized, Sum_const, (Sum_mean M dy) by exact M_pos. ring.
Qed.

(* BN.22: ∑ᵢ dxᵢ·x̂ᵢ = γ·r·M·ε·r²·⟨dy·x̂⟩ *)
Theorem BN_22 dy : ∑ i < M, bn_dx dy i * x̂ i = γ * r * M * ε * r ^ 2 * ⟨dy · x̂⟩.
Proof.
  transitivity (γ * r * Sum M (dy · x̂) + (- γ * r * ⟨dy⟩) * Sum M x̂
                + (- γ * r * ⟨dy · x̂⟩) * ∑ i < M, x̂ i ^ 2).
  - apply Sum_lin3. unfold bn_dx. termwise.
  - destruct BN_7 as [E F]. rewrite (Sum_mean M (fun i => x̂ i ^ 2)), E, F by exact M_pos.
    rewrite Sum_normalized, (Sum_mean M (dy · x̂)) by exact M_pos. ring.
Qed.

(* BN.19 without ε is a projection: a second one changes nothing. *)
Notation project g := (fun i => g i - ⟨g⟩ - x̂ i * ⟨g · x̂⟩).

Theorem BN_19_projection g i : ε = 0 -> project (project g) i = project g i.
Proof.
  intros E0. assert (A : ⟨project g⟩ = 0).
  { unfold mean at 1. replace (Sum M (project g)) with 0; [unfold Rdiv; ring |].
    symmetry. transitivity (1 * Sum M g + (- ⟨g⟩) * ∑ i < M, 1 + (- ⟨g · x̂⟩) * Sum M x̂).
    - apply Sum_lin3; termwise.
    - rewrite Sum_normalized, Sum_const, (Sum_mean M g) by exact M_pos. ring. }
  assert (B : ⟨project g · x̂⟩ = 0).
  { unfold mean at 1. replace (Sum M (project g · x̂)) with 0; [unfold Rdiv; ring |].
    symmetry. transitivity (1 * Sum M (g · x̂) + (- ⟨g⟩) * Sum M x̂
                            + (- ⟨g · x̂⟩) * ∑ i < M, x̂ i ^ 2).
    - apply Sum_lin3; termwise.
    - destruct BN_7 as [E F]. rewrite (Sum_mean M (fun i => x̂ i ^ 2)), E, F by exact M_pos.
      rewrite Sum_normalized, (Sum_mean M (g · x̂)) by exact M_pos. rewrite E0. ring. }
  cbv beta in *. rewrite A, B. ring.
Qed.

(* Its rank is M − 2: it takes to 0 just what is spanned by the vector of ones and x̂, and these two
   are orthogonal by BN.6. *)
Theorem BN_19_kernel g : ε = 0 -> (forall i, (i < M)%nat -> project g i = 0) <->
  (exists a b, forall i, (i < M)%nat -> g i = a + b * x̂ i).
Proof.
  intros E0. split.
  - intros Z. exists ⟨g⟩, ⟨g · x̂⟩. intros i I. specialize (Z i I). cbv beta in Z. lra.
  - intros (a & b & G) i I. cbv beta. assert (g1 : ⟨g⟩ = a).
    { transitivity ⟨fun i => a + b * x̂ i⟩.
      - unfold mean. f_equal. apply Sum_ext_lt, G.
      - rewrite (mean_lin2 M a b (fun _ => 1) x̂) by termwise.
        rewrite mean_const, mean_normalized by exact M_pos. ring. }
    assert (g2 : ⟨g · x̂⟩ = b).
    { transitivity ⟨fun i => (a + b * x̂ i) * x̂ i⟩.
      - unfold mean. f_equal. apply Sum_ext_lt. intros j J. rewrite G by exact J. reflexivity.
      - rewrite (mean_lin2 M a b x̂ (fun i => x̂ i ^ 2)) by termwise. destruct BN_7 as [E F].
        rewrite E, F, mean_normalized, E0 by exact M_pos. ring. }
    rewrite g1, g2, G by exact I. ring.
Qed.
End Batch_norm.

(* BN.23: dx₁ = −dx₂ = ½·γ·ε·r³·(dy₁ − dy₂) for M = 2: two values pass no gradient but by ε *)
Theorem BN_23 ε γ x dy : let r := rstd 2 ε x in let dx := bn_dx 2 ε γ x dy in
  0 < var 2 x + ε ->
  dx 0%nat = 1 / 2 * γ * ε * r ^ 3 * (dy 0%nat - dy 1%nat) /\ dx 1%nat = - dx 0%nat.
Proof.
  intros r dx root. pose proof (rstd_sqr 2 ε x root) as Q. fold r in Q.
  assert (V : var 2 x = ((x 0%nat - x 1%nat) / 2) ^ 2)
    by (unfold var, mean; simpl; field).
  assert (E : ε * r ^ 2 = 1 - r ^ 2 * ((x 0%nat - x 1%nat) / 2) ^ 2) by (rewrite <- V; lra).
  unfold dx, bn_dx, normalized. fold r. split.
  - transitivity (1 / 2 * γ * (ε * r ^ 2) * r * (dy 0%nat - dy 1%nat)); [| ring].
    rewrite E. unfold mean; simpl; field.
  - unfold mean; simpl; field.
Qed.
